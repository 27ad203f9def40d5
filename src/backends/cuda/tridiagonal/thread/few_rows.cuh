// SPDX-License-Identifier: BSD-3-Clause
// LU with partial pivoting between neighbouring rows, of a system that a thread has in registers.
//
//   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],   i = 0 … N-1;   lower[0] and upper[N-1] are 0
//
// Fewer rows than N: those behind are x = 0. Some 50 instructions a row (single precision 40; counted, with loads from shared memory), one reciprocal among them.
// Numerics: backward stable, element growth at most 2 (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 9.6). Pivots beyond PivotRange and zeros are left to who calls.
#pragma once

#include "backends/cuda/tridiagonal/pivot_watch.cuh"

namespace trifold::cuda {

template <class T, int N>
struct FewRows {
    T lower[N], diag[N], upper[N], rhs[N];

    __device__ __forceinline__ void close(int i) { lower[i] = 0, diag[i] = 1, upper[i] = 0, rhs[i] = 0; }

    /// 0, or NaN where one of the numbers is not finite.
    __device__ __forceinline__ T nothing() const {
        T sum = 0;
#pragma unroll
        for (int i = 0; i < N; ++i) sum = fused(lower[i], T(0), fused(diag[i], T(0), fused(upper[i], T(0), fused(rhs[i], T(0), sum))));
        return sum;
    }

    /// x takes the place of rhs; the rest is overwritten. False: some number of the system or of x is not finite, or there is a pivot that this does not divide by.
    __device__ __forceinline__ bool solve() {
        PivotWatch<T> watch;
        T seen = nothing();
        T pivot = diag[0], above = upper[0], value = rhs[0];
#pragma unroll
        for (int i = 0; i + 1 < N; ++i) {
            const T below = lower[i + 1], next_diag = diag[i + 1], next_upper = upper[i + 1], next_rhs = rhs[i + 1];
            const bool exchange = abs(below) > abs(pivot);
            const T inverse = watch.inverse(exchange ? below : pivot), multiplier = (exchange ? pivot : below) * inverse;
            // The row of U, and the one that goes on.
            diag[i] = inverse, upper[i] = exchange ? next_diag : above, lower[i] = exchange ? next_upper : T(0), rhs[i] = exchange ? next_rhs : value;
            pivot = fused(-multiplier, upper[i], exchange ? above : next_diag);
            above = fused(-multiplier, lower[i], exchange ? T(0) : next_upper);
            value = fused(-multiplier, rhs[i], exchange ? value : next_rhs);
        }
        T next = value * watch.inverse(pivot), after = 0;
        rhs[N - 1] = next;
        seen = fused(next, T(0), seen);
#pragma unroll
        for (int i = N - 2; i >= 0; --i) {
            const T now = fused(-upper[i], next, fused(-lower[i], after, rhs[i])) * diag[i];
            rhs[i] = now, seen = fused(now, T(0), seen);
            after = next, next = now;
        }
        return watch.good() && seen == T(0);
    }
};

}  // namespace trifold::cuda
