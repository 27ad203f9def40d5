// SPDX-License-Identifier: BSD-3-Clause
// LAPACK as a peer, through the `_work` calls of LAPACKE, which do not scan for NaN.
#pragma once

#include <vector>

#include "support/bands.hpp"

namespace trifold::tests {

template <class T>
struct Gtsv {
    int info = 0;  ///< i > 0: U(i, i) is exactly zero
    std::vector<T> x;
};

/// dgtsv or sgtsv; not for periodic systems.
template <class T>
Gtsv<T> gtsv(const Bands<T>& system);

/// dgttrf and dgtcon: the estimated condition number in the 1-norm; infinite for a singular matrix.
double condition(const Bands<double>& system);

/// dlagge: a random matrix with these singular values, reduced to tridiagonal form by orthogonal transformations, as MATLAB's
/// gallery('randsvd', n, kappa, mode, 1, 1) is. n ≤ 1000 or so: it costs O(n^3).
Bands<double> with_singular_values(const std::vector<double>& values, unsigned seed);

}  // namespace trifold::tests
