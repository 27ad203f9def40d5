// SPDX-License-Identifier: BSD-3-Clause
// Periodic systems with partial pivoting: the ring is pressed flat, in the order 0, n-1, 1, n-2, 2, …, in which neighbours on
// the ring are at most two places apart. That is a band of two diagonals on each side, solved by banded_lu.hpp. Unlike
// bordering or Sherman-Morrison, nothing has to be regular but the matrix itself.
#pragma once

#include "backends/reference/tridiagonal/banded_lu.hpp"
#include "backends/reference/tridiagonal/bands.hpp"
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

/// n ≥ 3.
template <class T>
Verdict ring_lu(Ring<T> ring, Scratch scratch) {
    const std::int64_t n = ring.bands.rows();
    Banded<T> A{scratch.take<T>(n * Banded<T>::width)};
    fold(ring, A);
    if (const std::int64_t column = factor(A); column >= 0) return {Reason::singular, fold_row(column, n)};
    solve_folded(A, ring.bands.x, scratch.take<T>(n));
    return {};
}

}  // namespace trifold::tridiagonal::reference
