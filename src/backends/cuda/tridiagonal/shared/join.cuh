// SPDX-License-Identifier: BSD-3-Clause
// The last unknowns of consecutive pieces of a column, each piece described by its ends (segment.cuh), as a tridiagonal system:
// its elimination, once, and what every right-hand side then needs.
//
//   gamma[s] = inverse (y[s] - coupling z[s+1]) - lower gamma[s-1]   forwards
//   x[s]     = gamma[s] - upper x[s+1]                               backwards
#pragma once

#include "backends/cuda/tridiagonal/shared/segment.cuh"

namespace trifold::cuda {

template <class T>
struct alignas(16) Join {
    T coupling, lower, inverse, upper;
};

/// By one thread. False where it is not safe.
template <class T>
__device__ __forceinline__ bool factor_join(const SegmentEnds<T>* ends, int pieces, Join<T>* join) {
    bool fine = true;
    T upper_before = 0, inverse_before = 0, u_before = 0;
    SegmentEnds<T> own = ends[0];
#pragma unroll 1
    for (int s = 0; s < pieces; ++s) {
        SegmentEnds<T> next = own;
        T p = own.p, upper = 0, coupling = 0;
        T grown = own.last;
        if (s + 1 < pieces) {
            next = ends[s + 1];
            coupling = own.c;
            p = fused(-coupling, next.alpha, p), upper = -coupling * next.beta;
            grown = max(grown, fabs(coupling) * next.first_growth);
        }
        const T lower = s ? own.e : T(0);
        const T pivot = fused(-lower, upper_before, p), u = fabs(pivot) + fabs(upper);
        const T q = max(fused(fabs(lower * inverse_before), u_before, u), grown);
        // A piece's last row may be padding, 0 1 0, on which nothing depends.
        const bool padding = own.e == T(0) && own.p == T(1) && own.c == T(0);
        const T inverse = reciprocal(pivot);
        fine = fine && (padding || q <= T(accepted_growth) * own.scale) && q <= shared_limit<T> && fabs(inverse) <= shared_limit<T>;
        join[s] = {coupling, lower * inverse, inverse, upper * inverse};
        upper_before = upper * inverse, inverse_before = inverse, u_before = u;
        own = next;
    }
    return fine;
}

}  // namespace trifold::cuda
