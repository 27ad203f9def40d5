// SPDX-License-Identifier: BSD-3-Clause
// Many lines with factored matrices, one for all or one for each (kept.hpp): a line costs three multiply-adds a value.
//
//   lower[i] v[i-1] + diag[i] v[i] + upper[i] v[i+1] = r[i],  i = 0 … n-1  (Thomas 1949)
//   forwards   w[i] = r[i] / p[i] - (lower[i] / p[i]) w[i-1],  p[i] = diag[i] - lower[i] c[i-1],  c[i] = upper[i] / p[i]
//   backwards  v[i] = w[i] - c[i] v[i+1]
//
// Numerics: nothing is pivoted. The factors are used where |L| |U| ≤ 4 max|row of A| in every row, so that the backward error is a few
// roundoffs for every right-hand side (Higham, Accuracy and Stability, 2nd ed., 9.6); else lines are solved with pivots as they need.
// A value that is not finite reaches v[0] of its line and is seen there.
#pragma once

#include <cstdint>
#include <vector>

namespace trifold::cpu {

/// Factors as they lie in memory: value i of one line for all at [i], else of line l at [i row_stride + l line_stride], of columns side by side.
template <class T>
struct FactorsOfLines {
    const T *scale, *lower, *upper;  ///< 1/p, lower/p, c
    std::int64_t n, row_stride = 1, line_stride = 0;
    bool one_for_all = false;
};

template <class T>
struct LineFactors {
    std::int64_t n = 0;
    std::vector<T> scale, lower, upper;  ///< 1/p, lower/p, c, and zeros up to a whole multiple of 16; empty where they are not to be used

    bool usable() const noexcept { return !scale.empty(); }
    FactorsOfLines<T> for_all() const noexcept { return {scale.data(), lower.data(), upper.data(), n, 1, 0, true}; }
};

/// lower[0] and upper[n-1] are not read.
template <class T>
LineFactors<T> factor_line(std::int64_t n, const T* lower, const T* diag, const T* upper);

/// Columns side by side: value i of column j at values[i row_stride + j]. Returns how many are not finite at their end; not_finite
/// (where given) gets 1 for these and 0 for the others.
template <class T>
std::int64_t solve_columns(const FactorsOfLines<T>& factors, std::int64_t columns, std::int64_t row_stride, T* values, std::int8_t* not_finite);

/// Lines one after the other: value i of line l at values[l line_stride + i]. buffer: line_buffer(n) values, aligned to 64.
template <class T>
std::int64_t solve_rows(const FactorsOfLines<T>& factors, std::int64_t lines, std::int64_t line_stride, T* values, std::int8_t* not_finite, T* buffer);

/// Values of buffer for solve_rows.
constexpr std::int64_t line_buffer(std::int64_t n) { return 2 * 16 * (n + 16); }

}  // namespace trifold::cpu
