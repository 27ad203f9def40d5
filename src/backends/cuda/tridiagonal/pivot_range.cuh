// SPDX-License-Identifier: BSD-3-Clause
// How large numbers are, compared as integers, and pivots whose reciprocals are trusted.
#pragma once

#ifdef __CUDACC__  // else a test has what is asked of it
#include "backends/cuda/tridiagonal/thread/chunk.cuh"
#endif

namespace trifold::cuda {

/// Without its sign, as an integer that grows with x, about the same for every factor of two.
__device__ __forceinline__ int magnitude(double x) { return __double2hiint(x) & 0x7fffffff; }
__device__ __forceinline__ int magnitude(float x) { return __float_as_int(x) & 0x7fffffff; }

template <class T>
struct Magnitude {
    static constexpr int factor_of_two = sizeof(T) == 8 ? 1 << 20 : 1 << 23;
    static constexpr int one = (sizeof(T) == 8 ? 1023 : 127) * factor_of_two, infinite = (sizeof(T) == 8 ? 2047 : 255) * factor_of_two;
};

/// Pivots whose reciprocals are trusted: from 2^-963 to 2^963, 2^-119 to 2^119 in single precision.
template <class T>
struct PivotRange {
    static constexpr int wide = (sizeof(T) == 8 ? 963 : 119) * Magnitude<T>::factor_of_two;
    bool good = true;

    __device__ __forceinline__ void see(T pivot) { good = good && static_cast<unsigned>(magnitude(pivot) - (Magnitude<T>::one - wide)) <= 2u * wide; }
    __device__ __forceinline__ T invert(T pivot) {
        see(pivot);
        return reciprocal(pivot);
    }
    __device__ __forceinline__ Divisor<T> divisor(T pivot) {
        see(pivot);
        return Divisor<T>(pivot);
    }
};

}  // namespace trifold::cuda
