// SPDX-License-Identifier: BSD-3-Clause
// Periodic systems with partial pivoting: the ring is pressed flat, in the order 0, n-1, 1, n-2, 2, …, in which neighbours on
// the ring are at most two places apart. That is a band of two diagonals on each side, solved by banded_lu.hpp. Unlike
// bordering or Sherman-Morrison, nothing has to be regular but the matrix itself.
#pragma once

#include "backends/reference/tridiagonal/banded_lu.hpp"
#include "backends/reference/tridiagonal/bands.hpp"
#include "backends/reference/tridiagonal/scratch.hpp"

namespace trifold::tridiagonal::reference {

/// n ≥ 3.
template <class T>
Verdict ring_lu(Ring<T> ring, Scratch scratch) {
    const Bands<T>& s = ring.bands;
    const std::int64_t n = s.rows();
    const auto place = [n](std::int64_t row) { return 2 * row < n ? 2 * row : 2 * (n - 1 - row) + 1; };
    const auto row_at = [n](std::int64_t p) { return p % 2 == 0 ? p / 2 : n - 1 - p / 2; };
    Banded<T> A{scratch.take<T>(n * Banded<T>::width)};
    const std::span<T> x = scratch.take<T>(n);
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t p = place(i);
        A(p, place(i > 0 ? i - 1 : n - 1)) = i > 0 ? s.lower[i] : ring.top_right;
        A(p, p) = s.diag[i];
        A(p, place(i < n - 1 ? i + 1 : 0)) = i < n - 1 ? s.upper[i] : ring.bottom_left;
        x[p] = s.x[i];
    }
    if (const std::int64_t column = solve_banded(A, x); column >= 0) return {Reason::singular, row_at(column)};
    for (std::int64_t i = 0; i < n; ++i) s.x[i] = x[place(i)];
    return {};
}

}  // namespace trifold::tridiagonal::reference
