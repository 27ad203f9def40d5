// SPDX-License-Identifier: BSD-3-Clause
// LU with partial pivoting of one system in shared memory, by two neighbouring lanes of a warp, from both ends.
//
//   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],   i = 0 … n-1
//
// Array: [4][n], lower, diag, upper, rhs; lower[0] and upper[n-1] are zero. Left behind: x in place of rhs, the rest is overwritten.
// Who does what: one lane has the first n/2 rows and goes downwards, the other one the rest and goes upwards. Each keeps the current row in
//   registers, exchanges it with the next where that has the larger entry in the column, and leaves the finished row of U, divided by its pivot; what is left is what it eliminates
//   with, since a row may wait through all others, and the roundings of equal ones would add up in it. Its unknowns but the last
//   occur in no row of the other lane, so that partial pivoting within the half is all there can be; the rows that both carry in
//   the end are two equations for the two unknowns in the middle. A step costs the latency of one reciprocal.
// Numerics: backward stable, element growth at most 2 (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 9.6); that of the
//   two rows in the middle at most 2 more. Pivots beyond PivotRange, where reciprocals are not trusted, and zeros are left to another path.
#pragma once

#include "backends/cuda/tridiagonal/pivot_range.cuh"

namespace trifold::cuda {

/// What became of a system: `solved`, `left` to another path, or the first row whose numbers are not finite.
struct PairVerdict {
    static constexpr int solved = -1, left = -2;
};

/// By all lanes of a warp; `active`: this pair has a system. The verdict is known to both.
template <class T>
__device__ __forceinline__ int solve_pair(T* system, int n, bool active, bool downwards) {
    struct Row {
        T near, diag, far, rhs;  ///< near: of the unknown that goes first
    };
    const int top = n / 2, count = active ? (downwards ? top : n - top) : 0, step = downwards ? 1 : -1, first = downwards ? 0 : n - 1;
    T *const near = system + (downwards ? 0 : 2 * n) + first, *const far = system + (downwards ? 2 * n : 0) + first;
    T *const diag = system + n + first, *const rhs = system + 3 * n + first;
    const auto row = [&](int k) { return Row{near[k * step], diag[k * step], far[k * step], rhs[k * step]}; };
    const auto finite = [](const Row& r) { return r.near * T(0) + r.diag * T(0) + r.far * T(0) + r.rhs * T(0) == T(0); };
    PivotRange<T> range;
    int bad = n;  // the first row that is not finite
    T d = 1, u = 0, y = 0;
    if (count > 0) {
        const Row own = row(0);
        if (!finite(own)) bad = first;
        d = own.diag, u = own.far, y = own.rhs;
        Row next = count > 1 ? row(1) : own;
        for (int k = 0; k + 1 < count; ++k) {
            const Row now = next;
            if (k + 2 < count) next = row(k + 2);
            if (!finite(now)) bad = min(bad, first + (k + 1) * step);
            const bool exchange = abs(now.near) > abs(d);
            const Divisor<T> pivot = range.divisor(exchange ? now.near : d);
            const T left = exchange ? d : now.near, q1 = pivot.of(exchange ? now.diag : u), q_rhs = pivot.of(exchange ? now.rhs : y);
            const T q2 = exchange ? pivot.quotient(now.far, now.near) : T(0);
            diag[k * step] = q1, far[k * step] = q2, rhs[k * step] = q_rhs;
            d = fused(-left, q1, exchange ? u : now.diag);
            u = exchange ? -left * q2 : now.far;
            y = fused(-left, q_rhs, exchange ? y : now.rhs);
        }
    }
    // d x[top-1] + u x[top] = y from above, the other way round from below.
    const T d_there = __shfl_xor_sync(~0u, d, 1), u_there = __shfl_xor_sync(~0u, u, 1), y_there = __shfl_xor_sync(~0u, y, 1);
    T p0 = downwards ? d : d_there, q0 = downwards ? u : u_there, z0 = downwards ? y : y_there;
    T p1 = downwards ? u_there : u, q1 = downwards ? d_there : d, z1 = downwards ? y_there : y;
    if (abs(p1) > abs(p0)) {
        const T p = p0, q = q0, z = z0;
        p0 = p1, q0 = q1, z0 = z1, p1 = p, q1 = q, z1 = z;
    }
    if (n == 1) p0 = 1, q0 = 0, z0 = 0, p1 = 0;
    const T inverse = range.invert(p0), m = p1 * inverse;
    const T below = fused(-m, z0, z1) * range.invert(fused(-m, q0, q1)), above = fused(-q0, below, z0) * inverse;
    T next = downwards ? above : below, after = downwards ? below : above;
    bool good = range.good && next * T(0) == T(0) && after * T(0) == T(0);
    if (count > 0) {
        rhs[(count - 1) * step] = next;
        Row ahead = count > 1 ? row(count - 2) : Row{};
        for (int k = count - 2; k >= 0; --k) {
            const Row u_row = ahead;
            if (k > 0) ahead = row(k - 1);
            const T now = fused(-u_row.diag, next, fused(-u_row.far, after, u_row.rhs));
            rhs[k * step] = now;
            good = good && now * T(0) == T(0);
            after = next, next = now;
        }
    }
    bad = min(bad, __shfl_xor_sync(~0u, bad, 1));
    good = __shfl_xor_sync(~0u, static_cast<int>(good), 1) && good;
    return bad < n ? bad : good ? PairVerdict::solved : PairVerdict::left;
}

}  // namespace trifold::cuda
