// SPDX-License-Identifier: BSD-3-Clause
// The residual of a solution, in double precision, relative to the rows around it:
//
//   max over the rows of a block of |rhs - A x|  /  max over the same rows of (|A| |x| + |rhs|)
//
// Source: W. Oettli and W. Prager, Compatibility of approximate solution of linear equations with given error bounds for
// coefficients and right-hand sides, 1964. Blocks keep a good part of a graded system from hiding a bad one.
#pragma once

#include <algorithm>
#include <cmath>

#include "backends/reference/tridiagonal/bands.hpp"

namespace trifold::tridiagonal::reference {

inline constexpr std::int64_t residual_rows = 32;

struct RowResidual {
    double value, scale;  ///< rhs - A x; |A| |x| + |rhs|
};

/// ring.bands.x is rhs here.
template <class T>
RowResidual row_residual(const Ring<T>& ring, std::span<const T> x, std::int64_t i) {
    const Bands<T>& s = ring.bands;
    const std::int64_t n = s.rows();
    const double lower = i > 0 ? s.lower[i] : ring.top_right, upper = i < n - 1 ? s.upper[i] : ring.bottom_left;
    const double a = lower * x[i > 0 ? i - 1 : n - 1], b = double{s.diag[i]} * x[i], c = upper * x[i < n - 1 ? i + 1 : 0];
    return {s.x[i] - (a + b + c), std::abs(double{s.x[i]}) + std::abs(a) + std::abs(b) + std::abs(c)};
}

struct Residual {
    double value = 0;       ///< of the worst block
    std::int64_t row = -1;  ///< its worst row
};

/// A block whose residual overflows counts as infinitely bad.
template <class T>
Residual residual_of(const Ring<T>& ring, std::span<const T> x) {
    const std::int64_t n = ring.bands.rows();
    Residual worst;
    for (std::int64_t first = 0; first < n; first += residual_rows) {
        double value = 0, scale = 0;
        std::int64_t row = first;
        for (std::int64_t i = first; i < std::min(first + residual_rows, n); ++i) {
            const RowResidual r = row_residual(ring, x, i);
            if (!(std::abs(r.value) <= value)) value = std::abs(r.value), row = i;
            scale = std::max(scale, r.scale);
        }
        double ratio = value == 0 ? 0 : value / scale;
        if (!std::isfinite(ratio)) ratio = HUGE_VAL;
        if (ratio > worst.value) worst = {ratio, row};
    }
    return worst;
}

}  // namespace trifold::tridiagonal::reference
