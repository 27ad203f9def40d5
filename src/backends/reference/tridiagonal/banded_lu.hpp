// SPDX-License-Identifier: BSD-3-Clause
// LU with partial pivoting of a band of two diagonals on each side, for what couples one place further than a tridiagonal
// matrix: the reduced system of SPIKE, and periodic systems folded in the middle. Pivoting fills two more diagonals above.
// Source: G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., section 4.3.5.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>

namespace trifold::tridiagonal::reference {

/// Row i keeps its columns i-2 … i+4 side by side, then its pivot; entries outside the matrix stay 0.
template <class T>
struct Banded {
    static constexpr std::int64_t below = 2, above = 4, width = below + 1 + above + 1;
    std::span<T> entries;

    std::int64_t rows() const noexcept { return static_cast<std::int64_t>(entries.size()) / width; }
    T& operator()(std::int64_t i, std::int64_t j) const { return entries[i * width + (j - i + below)]; }
    /// How far below row k its pivot came from: 0, 1 or 2.
    T& pivot(std::int64_t k) const { return entries[k * width + width - 1]; }
};

/// P A = L U in place, the multipliers below the diagonal. Returns the first column without a pivot, or -1.
template <class T>
std::int64_t factor(Banded<T> A) {
    const std::int64_t n = A.rows();
    for (std::int64_t k = 0; k < n; ++k) {
        const std::int64_t last_row = std::min(k + A.below, n - 1), last_column = std::min(k + A.above, n - 1);
        std::int64_t pivot = k;
        for (std::int64_t i = k + 1; i <= last_row; ++i)
            if (std::abs(A(i, k)) > std::abs(A(pivot, k))) pivot = i;
        if (A(pivot, k) == 0) return k;
        A.pivot(k) = static_cast<T>(pivot - k);
        if (pivot != k)
            for (std::int64_t j = k; j <= last_column; ++j) std::swap(A(k, j), A(pivot, j));
        for (std::int64_t i = k + 1; i <= last_row; ++i) {
            const T multiplier = A(i, k) /= A(k, k);
            if (multiplier == 0) continue;
            for (std::int64_t j = k + 1; j <= last_column; ++j) A(i, j) -= multiplier * A(k, j);
        }
    }
    return -1;
}

/// x: rhs on entry, solution on return.
template <class T>
void solve(Banded<T> A, std::span<T> x) {
    const std::int64_t n = A.rows();
    for (std::int64_t k = 0; k < n; ++k) {
        std::swap(x[k], x[k + static_cast<std::int64_t>(A.pivot(k))]);
        for (std::int64_t i = k + 1; i <= std::min(k + A.below, n - 1); ++i) x[i] -= A(i, k) * x[k];
    }
    for (std::int64_t i = n - 1; i >= 0; --i) {
        for (std::int64_t j = i + 1; j <= std::min(i + A.above, n - 1); ++j) x[i] -= A(i, j) * x[j];
        x[i] /= A(i, i);
    }
}

/// Both; A is overwritten.
template <class T>
std::int64_t solve_banded(Banded<T> A, std::span<T> x) {
    const std::int64_t column = factor(A);
    if (column < 0) solve(A, x);
    return column;
}

}  // namespace trifold::tridiagonal::reference
