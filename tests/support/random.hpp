// SPDX-License-Identifier: BSD-3-Clause
// Reproducible random numbers: the same on every machine and standard library, so that a printed seed is enough.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace trifold::tests {

/// SplitMix64. Source: G. L. Steele, D. Lea and C. H. Flood, Fast splittable pseudorandom number generators, OOPSLA 2014.
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t bits() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }

    double uniform(double low, double high) { return low + (high - low) * (static_cast<double>(bits() >> 11) * 0x1p-53); }
    std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(n)); }
    bool chance(double p) { return uniform(0, 1) < p; }

    /// Box-Muller.
    double normal(double mean, double deviation) {
        const double radius = std::sqrt(-2 * std::log(1 - uniform(0, 1)));
        return mean + deviation * radius * std::cos(2 * std::numbers::pi * uniform(0, 1));
    }

private:
    std::uint64_t state_;
};

}  // namespace trifold::tests
