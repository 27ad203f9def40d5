// SPDX-License-Identifier: BSD-3-Clause
// Rings with one matrix for all of them, opened on the host: A = B + u v^T with u = (g, 0 … 0, upper[n-1]), v = (1, 0 … 0, lower[0] / g), g = -diag[0], so that B is
// tridiagonal (J. Sherman, W. J. Morrison 1950; C. Temperton 1975 for rings).
//
// Numerics: safe where B is eliminated without pivots with |L||U| <= 6 max |row of A|, as on chip (resident/factors.hpp), and where closing does not amplify what
// the lines err: max |A||q| (|v[0]| + |v[n-1]|) / |1 + v . q| <= 100 max |row of A|. Else rings are eliminated with pivots.
#pragma once

#include <vector>

#include "backends/cuda/mesh/bands.hpp"

namespace trifold::cuda {

template <class T>
struct OpenedRing {
    bool safe = false;
    std::vector<T> q;             ///< B q = u
    T first = 0, last = 0;        ///< diagonals of B
    T weight = 0, scale = 0;      ///< v[n-1]; 1 / (1 + v . q)
};

/// n >= 3 rows.
template <class T>
OpenedRing<T> open_ring(const Bands<T>& ring);

}  // namespace trifold::cuda
