// SPDX-License-Identifier: BSD-3-Clause
// Elimination from both ends that meets in the middle row k ("burn at both ends").
// Source: I. Babuska, Numerical stability in problems of linear algebra, SIAM J. Numer. Anal. 9, 1972;
//         K. V. Fernando, On computing an eigenvector of a tridiagonal matrix, SIAM J. Matrix Anal. Appl. 18, 1997.
//
//   rows above k:  x[i] + c[i] x[i+1] = y[i]        rows below k:  a[i] x[i-1] + x[i] = y[i]
//   row k:  (diag[k] - lower[k] c[k-1] - upper[k] a[k+1]) x[k] = rhs[k] - lower[k] y[k-1] - upper[k] y[k+1]
//
// No pivoting: see thomas.hpp.
#pragma once

#include "backends/reference/tridiagonal/bands.hpp"
#include "backends/reference/tridiagonal/scratch.hpp"

namespace trifold::tridiagonal::reference {

template <class T>
Verdict twisted(Bands<T> s, Scratch) {
    const std::int64_t n = s.rows(), k = n / 2;
    for (std::int64_t i = 0; i < k; ++i) {
        T pivot = s.diag[i];
        if (i > 0) {
            pivot -= s.lower[i] * s.upper[i - 1];
            s.x[i] -= s.lower[i] * s.x[i - 1];
        }
        if (pivot == 0) return {Reason::unstable, i};
        s.upper[i] /= pivot;
        s.x[i] /= pivot;
    }
    for (std::int64_t i = n - 1; i > k; --i) {
        T pivot = s.diag[i];
        if (i < n - 1) {
            pivot -= s.upper[i] * s.lower[i + 1];
            s.x[i] -= s.upper[i] * s.x[i + 1];
        }
        if (pivot == 0) return {Reason::unstable, i};
        s.lower[i] /= pivot;
        s.x[i] /= pivot;
    }
    T pivot = s.diag[k];
    if (k > 0) {
        pivot -= s.lower[k] * s.upper[k - 1];
        s.x[k] -= s.lower[k] * s.x[k - 1];
    }
    if (k < n - 1) {
        pivot -= s.upper[k] * s.lower[k + 1];
        s.x[k] -= s.upper[k] * s.x[k + 1];
    }
    if (pivot == 0) return {Reason::unstable, k};
    s.x[k] /= pivot;
    for (std::int64_t i = k - 1; i >= 0; --i) s.x[i] -= s.upper[i] * s.x[i + 1];
    for (std::int64_t i = k + 1; i < n; ++i) s.x[i] -= s.lower[i] * s.x[i - 1];
    return {};
}

}  // namespace trifold::tridiagonal::reference
