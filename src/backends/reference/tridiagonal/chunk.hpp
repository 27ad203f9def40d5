// SPDX-License-Identifier: BSD-3-Clause
// One chunk of one system: its interior unknowns x[first+1] … x[last-1] are eliminated from its rows first … last with partial
// pivoting among *all* of these rows, so that a singular interior does no harm. Source: C. Klein and R. Strzodka, Tridiagonal
// GPU solver with scaled partial pivoting at maximum bandwidth, ICPP 2021; pivoting here is among three rows and not scaled.
//
// Before column j two rows are carried, each over (x[first-1], x[first], x[j], x[j+1]); row j+1 joins them. The one with the
// largest entry in column j is its pivot row, over (x[first-1], x[first], x[j], x[j+1], x[j+2]), and is kept in scratch; the
// other two lose x[j] and are carried on. After column last-1 the two carried rows are those that `reduce` returns.
//
// The sum of a row's coefficients is eliminated along with them, and at the end the largest coefficient is set to that sum less
// the others. Where sums are small, as in Poisson's equation, the chunk's effect is of the size 1/rows beside coefficients
// of 1 and would drown in their rounding: without the sums the error of x is 20 times dgtsv's there, with them about the same.
// Not so in a chunk with a row whose sum is no smaller than its parts: there the small parts would drown in the sum. The idea is that of W. K. Grassmann, M. I. Taksar and D. P. Heyman, Regenerative analysis and steady state distributions, 1985.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>

#include "backends/reference/tridiagonal/bands.hpp"
#include "families/tridiagonal/ops.hpp"

namespace trifold::tridiagonal::reference {

/// Coefficients of x[first-1], x[first], x[j], x[j+1], x[j+2], their sum, and the right-hand side.
template <class T>
struct ChunkRow {
    std::array<T, 5> a{};
    T sum = 0, rhs = 0;
};

template <class T>
struct Reduced {
    InterfaceRow rows[2];
    std::int64_t zero_pivot = -1;  ///< counted from the chunk's first row
};

/// s: rows first … last with *both* outer couplings in lower[0] and upper[m-1]; pivots: m - 2 rows are kept there. s is not changed.
template <class T>
Reduced<T> eliminate_interior(const Bands<T>& s, std::span<ChunkRow<T>> pivots) {
    const std::int64_t m = s.rows();
    if (m == 1) return {};  // excluded by Partition
    bool balanced = m > 2;
    const auto sum = [&s, &balanced](std::int64_t i) {
        const T value = (s.lower[i] + s.upper[i]) + s.diag[i];
        balanced = balanced && std::abs(value) <= (std::abs(s.lower[i]) + std::abs(s.diag[i]) + std::abs(s.upper[i])) / 2;
        return value;
    };
    // Rows 0 and 1 in terms of x[-1], x[0], x[1], x[2].
    ChunkRow<T> carried[3];
    carried[0] = {{s.lower[0], s.diag[0], s.upper[0], 0, 0}, sum(0), s.x[0]};
    carried[1] = {{0, s.lower[1], s.diag[1], s.upper[1], 0}, sum(1), s.x[1]};
    for (std::int64_t j = 1; j + 1 < m; ++j) {
        carried[2] = {{0, 0, s.lower[j + 1], s.diag[j + 1], s.upper[j + 1]}, sum(j + 1), s.x[j + 1]};
        int best = 0;
        for (int r = 1; r < 3; ++r)
            if (std::abs(carried[r].a[2]) > std::abs(carried[best].a[2])) best = r;
        if (carried[best].a[2] == 0) return {{}, j};
        std::swap(carried[best], carried[2]);
        const ChunkRow<T>& pivot = pivots[j - 1] = carried[2];
        for (int r = 0; r < 2; ++r) {
            const T multiplier = carried[r].a[2] / pivot.a[2];
            for (int c = 0; c < 5; ++c) carried[r].a[c] -= multiplier * pivot.a[c];
            carried[r].sum -= multiplier * pivot.sum;
            carried[r].rhs -= multiplier * pivot.rhs;
            carried[r].a[2] = carried[r].a[3], carried[r].a[3] = carried[r].a[4], carried[r].a[4] = 0;
        }
    }
    Reduced<T> result;
    for (int r = 0; r < 2; ++r) {
        int largest = 0;
        for (int c = 1; c < 4; ++c)
            if (std::abs(carried[r].a[c]) > std::abs(carried[r].a[largest])) largest = c;
        T rest = carried[r].sum;
        for (int c = 0; c < 4; ++c)
            if (c != largest) rest -= carried[r].a[c];
        if (balanced) carried[r].a[largest] = rest;
        for (int c = 0; c < 4; ++c) result.rows[r].coefficient[c] = carried[r].a[c];
        result.rows[r].rhs = carried[r].rhs;
    }
    return result;
}

/// The interior from the kept rows: x[0] and x[m-1] are known, as are the two unknowns beside the chunk.
template <class T>
void recompute_interior(std::span<const ChunkRow<T>> pivots, T above, T below, std::span<T> x) {
    const std::int64_t m = static_cast<std::int64_t>(x.size());
    for (std::int64_t j = m - 2; j >= 1; --j) {
        const ChunkRow<T>& pivot = pivots[j - 1];
        const T next = x[j + 1], after = j + 2 < m ? x[j + 2] : below;
        x[j] = (pivot.rhs - pivot.a[0] * above - pivot.a[1] * x[0] - pivot.a[3] * next - pivot.a[4] * after) / pivot.a[2];
    }
}

}  // namespace trifold::tridiagonal::reference
