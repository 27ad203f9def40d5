// SPDX-License-Identifier: BSD-3-Clause
// LU with partial pivoting between neighbouring rows, which fills a second diagonal above. The scheme of LAPACK's ?gttrf
// and ?gtsv; source: G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., section 4.3.
//
// Backward stable: |x's residual| ≤ c u (|A| |x|) with element growth of at most 2 per row (Higham, 2nd ed., section 9.6).
// An exactly zero pivot means that A is singular; the row named is that of the first zero on U's diagonal.
#pragma once

#include <cmath>
#include <utility>

#include "backends/reference/tridiagonal/bands.hpp"
#include "backends/reference/tridiagonal/scratch.hpp"

namespace trifold::tridiagonal::reference {

/// P A = L U: `multiplier[i]` takes row i from row i+1 after the two were exchanged where `swapped[i]`; diag, upper and
/// upper2 are the diagonals of U.
template <class T>
struct LU {
    std::span<T> multiplier, diag, upper, upper2;
    std::span<unsigned char> swapped;
};

/// Factors in place: multiplier[i] holds lower[i+1] on entry. Returns the first row with a zero pivot, or -1.
template <class T>
std::int64_t factor(LU<T> f) {
    const std::int64_t n = static_cast<std::int64_t>(f.diag.size());
    for (std::int64_t i = 0; i + 1 < n; ++i) {
        T& below = f.multiplier[i];
        f.swapped[i] = std::abs(below) > std::abs(f.diag[i]);
        f.upper2[i] = 0;
        if (f.swapped[i]) {
            std::swap(f.diag[i], below);
            std::swap(f.upper[i], f.diag[i + 1]);
            if (i + 2 < n) f.upper2[i] = std::exchange(f.upper[i + 1], T{0});
        }
        if (f.diag[i] == 0) return i;
        below /= f.diag[i];
        f.diag[i + 1] -= below * f.upper[i];
        if (f.swapped[i] && i + 2 < n) f.upper[i + 1] = -below * f.upper2[i];
    }
    return n > 0 && f.diag[n - 1] == 0 ? n - 1 : -1;
}

/// x: rhs on entry, solution on return.
template <class T>
void solve(const LU<T>& f, std::span<T> x) {
    const std::int64_t n = static_cast<std::int64_t>(x.size());
    for (std::int64_t i = 0; i + 1 < n; ++i) {
        if (f.swapped[i]) std::swap(x[i], x[i + 1]);
        x[i + 1] -= f.multiplier[i] * x[i];
    }
    for (std::int64_t i = n - 1; i >= 0; --i) {
        if (i + 1 < n) x[i] -= f.upper[i] * x[i + 1];
        if (i + 2 < n) x[i] -= f.upper2[i] * x[i + 2];
        x[i] /= f.diag[i];
    }
}

/// The factorisation of `s` in its own arrays and in scratch.
template <class T>
LU<T> lu_of(Bands<T> s, Scratch& scratch) {
    const std::int64_t n = s.rows();
    return {s.lower.last(n - 1), s.diag, s.upper, scratch.take<T>(n), scratch.take<unsigned char>(n)};
}

template <class T>
Verdict lu(Bands<T> s, Scratch scratch) {
    const LU<T> f = lu_of(s, scratch);
    if (const std::int64_t row = factor(f); row >= 0) return {Reason::singular, row};
    solve(f, s.x);
    return {};
}

}  // namespace trifold::tridiagonal::reference
