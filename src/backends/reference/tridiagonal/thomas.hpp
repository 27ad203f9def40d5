// SPDX-License-Identifier: BSD-3-Clause
// LU without pivoting. Source: L. H. Thomas, Elliptic problems in linear difference equations over a network, 1949.
//
//   p[i] = diag[i] - lower[i] c[i-1],   c[i] = upper[i] / p[i],   y[i] = (rhs[i] - lower[i] y[i-1]) / p[i]
//   x[i] = y[i] - c[i] x[i+1]
//
// Backward stable where the matrix is dominant by rows or columns, positive definite, or an M-matrix (Higham, Accuracy and
// Stability of Numerical Algorithms, 2nd ed., section 9.6). A zero pivot is `unstable`: the matrix may be regular.
#pragma once

#include "backends/reference/tridiagonal/bands.hpp"
#include "backends/reference/tridiagonal/scratch.hpp"

namespace trifold::tridiagonal::reference {

template <class T>
Verdict thomas(Bands<T> s, Scratch) {
    const std::int64_t n = s.rows();
    for (std::int64_t i = 0; i < n; ++i) {
        T pivot = s.diag[i];
        if (i > 0) {
            pivot -= s.lower[i] * s.upper[i - 1];
            s.x[i] -= s.lower[i] * s.x[i - 1];
        }
        if (pivot == 0) return {Reason::unstable, i};
        s.upper[i] /= pivot;
        s.x[i] /= pivot;
    }
    for (std::int64_t i = n - 2; i >= 0; --i) s.x[i] -= s.upper[i] * s.x[i + 1];
    return {};
}

}  // namespace trifold::tridiagonal::reference
