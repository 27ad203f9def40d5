// SPDX-License-Identifier: BSD-3-Clause
// The matrix that all systems share, eliminated once, segment by segment, as far as the matrix alone goes.
//
//   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i],   cut into segments of R rows
//
// Gaussian elimination without exchanges, in this order: the first R-1 rows of every segment, then the segments' last rows, which
// are a tridiagonal system of their own (join.cuh; F. A. Wang 1981, "A parallel method for tridiagonal equations"). Of a right-hand
// side there remain, per row:
//
//   y[i] = inverse[i] d[i] - lower[i] y[i-1]                                forwards
//   z[i] = y[i] - upper[i] z[i+1]                                          backwards, z[R-1] = 0; only z[0] is wanted
//   x[i] = y[i] - fill[i] x[before] - upper[i] x[i+1]                       backwards, once the last rows' unknowns are known
//
// and per segment  e x[before] + p x[last] + c x[after] = y[R-1]  and  x[first] = z[0] - alpha x[before] - beta x[last].
//
// Numerics: the computed x solves (A + E) x = d with |E| ≤ k u |L||U|, k of the order of R in the worst case and of a few in practice
// (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., theorem 9.3 for the permuted matrix). So |L||U| row by row
// against |A| tells for every right-hand side at once whether this elimination is stable: `growth` below.
#pragma once

#include "backends/cuda/tridiagonal/thread/chunk.cuh"

namespace trifold::cuda {

/// Largest row sum of |L||U| that is accepted, in units of the largest row sum of |A| in the same segment: 3 where the diagonal is
/// dominant, less than 2 for Poisson's matrix.
inline constexpr int accepted_growth = 6;

template <class T>
inline constexpr T shared_limit = sizeof(T) == 8 ? T(1e290) : T(1e30);

/// What neighbours and the join need of a segment.
template <class T>
struct SegmentEnds {
    T e, p, c;          ///< e x[before] + p x[last] + c x[after] = y[R-1]
    T alpha, beta;      ///< x[first] = z[0] - alpha x[before] - beta x[last]
    T scale;            ///< largest row sum of |A|
    T last;             ///< row sum of |U| of the last row
    T first_growth;     ///< largest row sum of |L||U| in the row before the segment per unit of its coupling to it
};

/// `rows` has lower(i), diag(i), upper(i) of row i, whether it is real(i), not padding, and set(i, inverse, lower, upper, fill). Returns
/// false where the elimination of the segment's rows is not safe. own: how many rows there are, where the last one of them is the segment's. Or it skips rows at its
/// beginning: y is zero there, and z is that of the row behind them.
template <int R, int Unroll, class T, class Rows>
__device__ __forceinline__ bool factor_segment(Rows& rows, SegmentEnds<T>& ends, int own = R) {
    T worst = 0, scale = 0, first = 0, reach = 1, alpha = 0;
    T upper = 0, fill = -1, inverse = 0, u_before = 0;
    bool fine = true;
    const auto eliminate = [&](int i, T a, T& p, T& e, T& u) {
        const T b = rows.diag(i), c = rows.upper(i);
        p = fused(-a, upper, b), e = -a * fill;
        u = fabs(p) + fabs(c) + fabs(e);
        const T q = fused(fabs(a * inverse), u_before, u);
        if (rows.real(i)) {
            fine = fine && q <= shared_limit<T>;
            worst = max(worst, q);
            scale = max(scale, fabs(a) + fabs(b) + fabs(c));
        }
    };
    T p, e, u;
#pragma unroll Unroll
    for (int i = 0; i < own - 1; ++i) {
        if constexpr (requires { rows.skips(i); })
            if (rows.skips(i)) {
                rows.set(i, T(0), T(0), T(-1), T(0));
                continue;
            }
        const T a = rows.lower(i), c = rows.upper(i);
        eliminate(i, a, p, e, u);
        inverse = reciprocal(p);
        const T f = fabs(reach * inverse) * u;
        fine = fine && f <= shared_limit<T>;
        first = max(first, f);
        upper = c * inverse, fill = e * inverse, u_before = u;
        alpha = fused(reach, fill, alpha);
        reach *= -upper;
        rows.set(i, inverse, i ? a * inverse : T(0), upper, fill);
    }
    // The last row is not divided by its pivot: that is not known before it has been joined.
    const T a = rows.lower(own - 1), c = rows.upper(own - 1);
    eliminate(own - 1, a, p, e, u);
    rows.set(own - 1, T(1), a, T(0), T(0));
    ends = {e, p, c, alpha, -reach, scale, u, first};
    return fine && worst <= T(accepted_growth) * scale;
}

}  // namespace trifold::cuda
