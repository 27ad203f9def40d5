// SPDX-License-Identifier: BSD-3-Clause
// A system's numbers, of which the host makes few: dominant, or Poisson's where the diagonal is to be 2 exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trifold::bench {

/// Numbers repeat after this many rows, so that the host has to make and to check few.
constexpr std::int64_t period = 1 << 20;

/// A diagonal that no dominant system here has.
constexpr double poisson = 2;

template <class T>
struct Numbers {
    std::vector<T> lower, diag, upper, rhs;

    explicit Numbers(double diagonal) : lower(period), diag(period), upper(period), rhs(period) {
        unsigned state = 7;
        const auto next = [&state] { return static_cast<T>((((state = state * 1664525u + 1013904223u)) >> 8) * 0x1p-23 - 1); };
        for (std::size_t i = 0; i < period; ++i) lower[i] = next(), upper[i] = next(), diag[i] = T(diagonal + 0.5) + next() / 2, rhs[i] = next();
        if (diagonal == poisson) lower.assign(period, -1), upper.assign(period, -1), diag.assign(period, 2);
    }
};

}  // namespace trifold::bench
