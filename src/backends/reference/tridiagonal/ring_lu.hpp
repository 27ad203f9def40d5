// SPDX-License-Identifier: BSD-3-Clause
// Periodic systems with partial pivoting: the ring is pressed flat, in the order 0, n-1, 1, n-2, 2, …, in which neighbours on
// the ring are at most two places apart. That is a band of two diagonals on each side, solved by banded_lu.hpp. Unlike
// bordering or Sherman-Morrison, nothing has to be regular but the matrix itself.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "backends/reference/tridiagonal/banded_lu.hpp"
#include "backends/reference/tridiagonal/bands.hpp"
#include "backends/reference/tridiagonal/residual.hpp"
#include "backends/reference/tridiagonal/scratch.hpp"

namespace trifold::tridiagonal::reference {

/// Place of a row in the folded order, and the row at a place.
inline std::int64_t fold_place(std::int64_t row, std::int64_t n) { return 2 * row < n ? 2 * row : 2 * (n - 1 - row) + 1; }
inline std::int64_t fold_row(std::int64_t place, std::int64_t n) { return place % 2 == 0 ? place / 2 : n - 1 - place / 2; }

/// A (all zero on entry) becomes the folded matrix. n ≥ 3.
template <class T>
void fold(const Ring<T>& ring, Banded<T> A) {
    const Bands<T>& s = ring.bands;
    const std::int64_t n = s.rows();
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t p = fold_place(i, n);
        A(p, fold_place(i > 0 ? i - 1 : n - 1, n)) = i > 0 ? s.lower[i] : ring.top_right;
        A(p, p) = s.diag[i];
        A(p, fold_place(i < n - 1 ? i + 1 : 0, n)) = i < n - 1 ? s.upper[i] : ring.bottom_left;
    }
}

/// x: rhs on entry, solution on return; A is the factored fold, `folded` n elements of scratch.
template <class T>
void solve_folded(Banded<T> A, std::span<T> x, std::span<T> folded) {
    const auto n = static_cast<std::int64_t>(x.size());
    for (std::int64_t i = 0; i < n; ++i) folded[fold_place(i, n)] = x[i];
    solve(A, folded);
    for (std::int64_t i = 0; i < n; ++i) x[i] = folded[fold_place(i, n)];
}

/// |rhs - A x| / (|A| |x| + |rhs|) in the maximum norm.
template <class T>
double ring_residual(const Ring<T>& ring, std::span<const T> x) {
    double value = 0, scale = 0;
    for (std::int64_t i = 0; i < ring.bands.rows(); ++i) {
        const RowResidual r = row_residual(ring, x, i);
        value = std::max(value, std::abs(r.value)), scale = std::max(scale, r.scale);
    }
    return value > 0 ? value / scale : 0;
}

/// n ≥ 3. Where nothing decays, roundings of all rows meet in those where the fold ends (a million rows: up to 200 units of roundoff), and one step of refinement is due.
template <class T>
Verdict ring_lu(Ring<T> ring, Scratch scratch) {
    const std::int64_t n = ring.bands.rows();
    Banded<T> A{scratch.take<T>(n * Banded<T>::width)};
    fold(ring, A);
    if (const std::int64_t column = factor(A); column >= 0) return {Reason::singular, fold_row(column, n)};
    const std::span<T> x = ring.bands.x, folded = scratch.take<T>(n), rhs = scratch.take<T>(n), more = scratch.take<T>(n);
    std::ranges::copy(x, rhs.begin());
    solve_folded(A, x, folded);
    ring.bands.x = rhs;
    const double accepted = 4 * unit_roundoff(dtype_of<T>), residual = ring_residual(ring, std::span<const T>(x));
    if (!(residual > accepted) || !std::isfinite(residual)) return {};
    for (std::int64_t i = 0; i < n; ++i) more[i] = static_cast<T>(row_residual(ring, std::span<const T>(x), i).value);
    solve_folded(A, more, folded);
    for (std::int64_t i = 0; i < n; ++i) more[i] += x[i];
    if (!(ring_residual(ring, std::span<const T>(more)) < residual)) return {};
    std::ranges::copy(more, x.begin());
    return {Reason::refined};
}

}  // namespace trifold::tridiagonal::reference
