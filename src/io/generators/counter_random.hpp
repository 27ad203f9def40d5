// SPDX-License-Identifier: BSD-3-Clause
// Random numbers that are a function of (seed, system, stream, index): SplitMix64 entered at any place of its sequence
// (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014, figure 17).
#pragma once

#include <cstdint>

namespace trifold::io {

constexpr std::uint64_t golden_gamma = 0x9e3779b97f4a7c15u;

constexpr std::uint64_t mix64(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/// One sequence of 2^64 numbers.
struct StreamKey {
    std::uint64_t key = 0;

    constexpr StreamKey stream(std::uint64_t number) const { return {mix64(key + (number + 1) * golden_gamma)}; }
    constexpr std::uint64_t bits(std::int64_t index) const {
        return mix64(key + (static_cast<std::uint64_t>(index) + 1) * golden_gamma);
    }

    /// In [0, 1).
    constexpr double uniform(std::int64_t index) const { return static_cast<double>(bits(index) >> 11) * 0x1p-53; }

    /// In [-1, 1).
    constexpr double symmetric(std::int64_t index) const {
        return static_cast<double>(bits(index) >> 11) * 0x1p-52 - 1.0;
    }

    /// Mean 0, variance 1, within ±2√3: the sum of four uniforms (Irwin–Hall), which needs no function but a root.
    constexpr double bell(std::int64_t index) const {
        const std::uint64_t b = bits(index);
        const auto sum = static_cast<std::int64_t>((b & 0xffff) + (b >> 16 & 0xffff) + (b >> 32 & 0xffff) + (b >> 48));
        return static_cast<double>(sum - 131070) * (1.7320508075688772 / 65536);
    }
};

}  // namespace trifold::io
