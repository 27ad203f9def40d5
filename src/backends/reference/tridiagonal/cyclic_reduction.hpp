// SPDX-License-Identifier: BSD-3-Clause
// Cyclic reduction, for any number of rows. Source: R. W. Hockney, A fast direct solution of Poisson's equation using
// Fourier analysis, J. ACM 12, 1965; W. Gander and G. H. Golub, Cyclic reduction - history and applications, 1997.
//
// With stride s = 1, 2, 4, …: every second row that is left (i + 1 divisible by 2s) takes away its neighbours x[i-s] and
// x[i+s] by means of their own rows. The one row that stays is solved, the rest follow backwards:
//   x[i] = (rhs[i] - lower[i] x[i-s] - upper[i] x[i+s]) / diag[i]
//
// No pivoting. Stable where the matrix is dominant (P. Yalamov and V. Pavlov, Stability of the block cyclic reduction, 1996).
#pragma once

#include "backends/reference/tridiagonal/bands.hpp"
#include "backends/reference/tridiagonal/scratch.hpp"

namespace trifold::tridiagonal::reference {

template <class T>
Verdict cyclic_reduction(Bands<T> s, Scratch) {
    const std::int64_t n = s.rows();
    std::int64_t stride = 1;
    for (; 2 * stride <= n; stride *= 2) {
        for (std::int64_t i = 2 * stride - 1; i < n; i += 2 * stride) {
            const std::int64_t above = i - stride, below = i + stride;
            if (s.diag[above] == 0) return {Reason::unstable, above};
            const T up = s.lower[i] / s.diag[above];
            s.diag[i] -= up * s.upper[above];
            s.x[i] -= up * s.x[above];
            s.lower[i] = above - stride >= 0 ? -up * s.lower[above] : T{0};
            if (below < n) {
                if (s.diag[below] == 0) return {Reason::unstable, below};
                const T down = s.upper[i] / s.diag[below];
                s.diag[i] -= down * s.lower[below];
                s.x[i] -= down * s.x[below];
                s.upper[i] = below + stride < n ? -down * s.upper[below] : T{0};
            }
        }
    }
    for (; stride >= 1; stride /= 2) {
        for (std::int64_t i = stride - 1; i < n; i += 2 * stride) {
            if (s.diag[i] == 0) return {Reason::unstable, i};
            T value = s.x[i];
            if (i - stride >= 0) value -= s.lower[i] * s.x[i - stride];
            if (i + stride < n) value -= s.upper[i] * s.x[i + stride];
            s.x[i] = value / s.diag[i];
        }
    }
    return {};
}

}  // namespace trifold::tridiagonal::reference
