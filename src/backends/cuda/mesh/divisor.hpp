// SPDX-License-Identifier: BSD-3-Clause
// Division of numbers below 2^32 by one that is known before, in four instructions (T. Granlund, P. L. Montgomery, Division by invariant integers using
// multiplication, PLDI 1994).
#pragma once

#include <cstdint>

namespace trifold::cuda {

struct Divisor {
    unsigned divisor = 1, multiplier = 1, first = 0, second = 0;

#ifdef __CUDACC__
    __device__ __forceinline__ unsigned divide(unsigned n) const {
        const unsigned t = __umulhi(multiplier, n);
        return (t + ((n - t) >> first)) >> second;
    }
    /// n becomes what remains.
    __device__ __forceinline__ unsigned split(unsigned& n) const {
        const unsigned quotient = divide(n);
        n -= quotient * divisor;
        return quotient;
    }
#endif
};

#ifndef __CUDACC__
inline unsigned quotient(const Divisor& by, unsigned n) {
    const auto t = static_cast<unsigned>(std::uint64_t{by.multiplier} * n >> 32);
    return (t + ((n - t) >> by.first)) >> by.second;
}

/// 1 ≤ d < 2^32.
inline Divisor divisor_of(std::int64_t d) {
    unsigned bits = 0;
    while (std::uint64_t{1} << bits < static_cast<std::uint64_t>(d)) ++bits;
    const std::uint64_t above = (std::uint64_t{1} << bits) - static_cast<std::uint64_t>(d);
    return {static_cast<unsigned>(d), static_cast<unsigned>((above << 32) / static_cast<std::uint64_t>(d) + 1), bits > 0 ? 1u : 0u, bits > 0 ? bits - 1 : 0};
}
#endif

/// Those of a mesh, for batches of less than 2^32 points.
struct Extents {
    Divisor along[3];
};

}  // namespace trifold::cuda
