// SPDX-License-Identifier: BSD-3-Clause
// The textbook's two sweeps over one system, as a program that knows its n writes them into its own loop.
#pragma once

#include <cstdint>

namespace trifold::bench {

/// x = A^-1 rhs, n rows side by side, no pivoting; c holds n numbers of scratch.
template <class T>
inline void thomas_rows(std::int64_t n, const T* __restrict lower, const T* __restrict diag, const T* __restrict upper, const T* __restrict rhs,
                        T* __restrict x, T* __restrict c) {
    T pivot = 1 / diag[0];
    c[0] = upper[0] * pivot;
    x[0] = rhs[0] * pivot;
    for (std::int64_t i = 1; i < n; ++i) {
        pivot = 1 / (diag[i] - lower[i] * c[i - 1]);
        c[i] = upper[i] * pivot;
        x[i] = (rhs[i] - lower[i] * x[i - 1]) * pivot;
    }
    for (std::int64_t i = n - 2; i >= 0; --i) x[i] -= c[i] * x[i + 1];
}

}  // namespace trifold::bench
