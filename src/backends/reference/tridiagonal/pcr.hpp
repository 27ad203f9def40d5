// SPDX-License-Identifier: BSD-3-Clause
// Parallel cyclic reduction. Source: R. W. Hockney and C. R. Jesshope, Parallel Computers, 1981, section 5.4.3.
//
// With stride s = 1, 2, 4, … < n *every* row takes away its neighbours x[i-s] and x[i+s] by means of their own rows, so that
// after ceil(log2 n) steps only the diagonal is left. Words moved: 8 per row and step, between two sets of arrays.
//
// No pivoting: see cyclic_reduction.hpp.
#pragma once

#include <utility>

#include "backends/reference/tridiagonal/bands.hpp"
#include "backends/reference/tridiagonal/scratch.hpp"

namespace trifold::tridiagonal::reference {

template <class T>
Verdict pcr(Bands<T> s, Scratch scratch) {
    const std::int64_t n = s.rows();
    Bands<T> from = s, to{scratch.take<T>(n), scratch.take<T>(n), scratch.take<T>(n), scratch.take<T>(n)};
    for (std::int64_t stride = 1; stride < n; stride *= 2) {
        for (std::int64_t i = 0; i < n; ++i) {
            const std::int64_t above = i - stride, below = i + stride;
            T lower = 0, diag = from.diag[i], upper = 0, rhs = from.x[i];
            if (above >= 0) {
                if (from.diag[above] == 0) return {Reason::unstable, above};
                const T up = from.lower[i] / from.diag[above];
                diag -= up * from.upper[above];
                rhs -= up * from.x[above];
                if (above - stride >= 0) lower = -up * from.lower[above];
            }
            if (below < n) {
                if (from.diag[below] == 0) return {Reason::unstable, below};
                const T down = from.upper[i] / from.diag[below];
                diag -= down * from.lower[below];
                rhs -= down * from.x[below];
                if (below + stride < n) upper = -down * from.upper[below];
            }
            to.lower[i] = lower, to.diag[i] = diag, to.upper[i] = upper, to.x[i] = rhs;
        }
        std::swap(from, to);
    }
    for (std::int64_t i = 0; i < n; ++i) {
        if (from.diag[i] == 0) return {Reason::unstable, i};
        s.x[i] = from.x[i] / from.diag[i];
    }
    return {};
}

}  // namespace trifold::tridiagonal::reference
