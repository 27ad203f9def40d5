// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>

#include "support/bands.hpp"
#include "support/random.hpp"
#include "support/zoo.hpp"

namespace trifold::tests {

/// Couplings uniform in (-1, 1); |diag| = dominance × (|lower| + |upper|), signs at random; dominance 0 = diag uniform as well.
inline Bands<double> random_matrix(std::int64_t n, double dominance, Random& random, bool periodic = false) {
    Bands<double> s(n, periodic);
    for (std::int64_t i = 0; i < n; ++i) {
        s.lower[i] = random.uniform(-1, 1);
        s.upper[i] = random.uniform(-1, 1);
        s.diag[i] = random.uniform(-1, 1);
        if (dominance > 0) s.diag[i] = std::copysign(dominance * (std::abs(s.lower[i]) + std::abs(s.upper[i])), s.diag[i]);
    }
    if (!periodic && n > 0) s.lower[0] = s.upper[n - 1] = 0;
    if (dominance > 0 && n == 1 && !periodic) s.diag[0] = 2;
    return s;
}

inline Bands<double> random_system(std::int64_t n, double dominance, std::uint64_t seed, bool periodic = false) {
    Random random(seed);
    Bands<double> s = random_matrix(n, dominance, random, periodic);
    set_rhs(s, random);
    return s;
}

}  // namespace trifold::tests
