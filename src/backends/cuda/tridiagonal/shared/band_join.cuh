// SPDX-License-Identifier: BSD-3-Clause
// What a block has of a column, several segments one below the other, as one piece with ends of its own (segment.cuh): its last rows but one are eliminated, forwards,
// as the rows of a segment are.
//
//   y[s] = inverse (last[s] - coupling first[s+1]) - lower y[s-1]       forwards, s = 0 … S-1, the last one not divided
//   z[s] = y[s] - upper z[s+1]                                          backwards, z[S-1] = 0; head = first[0] - beta z[0]
//   x[s] = y[s] - fill x[before] - upper x[s+1]                         backwards
#pragma once

#include "backends/cuda/tridiagonal/shared/segment.cuh"

namespace trifold::cuda {

template <class T>
struct alignas(16) BandLink {
    T coupling, inverse, lower, upper, fill, beta, unused[2];
};

/// By one thread; `ends` of `pieces` segments become those of all of them. False where it is not safe.
template <class T>
__device__ __forceinline__ bool factor_band(const SegmentEnds<T>* ends, int pieces, BandLink<T>* links, SegmentEnds<T>& band) {
    bool fine = true;
    T upper_before = 0, fill_before = -1, inverse_before = 0, u_before = 0, reach = 1, alpha = 0, first = 0, scale = 0;
    const T alpha_first = ends[0].alpha, beta_first = ends[0].beta, growth_first = ends[0].first_growth;
    SegmentEnds<T> own = ends[0];
#pragma unroll 1
    for (int s = 0; s < pieces; ++s) {
        const bool is_last = s + 1 == pieces;
        SegmentEnds<T> next = own;
        T p = own.p, upper = own.c, coupling = 0, grown = own.last;
        if (!is_last) {
            next = ends[s + 1];
            coupling = own.c;
            p = fused(-coupling, next.alpha, p), upper = -coupling * next.beta;
            grown = max(grown, fabs(coupling) * next.first_growth);
        }
        const T pivot = fused(-own.e, upper_before, p), e = -own.e * fill_before, u = fabs(pivot) + fabs(upper) + fabs(e);
        const T q = max(fused(fabs(own.e * inverse_before), u_before, u), grown);
        const bool padding = own.e == T(0) && own.p == T(1) && own.c == T(0);
        fine = fine && (padding || q <= T(accepted_growth) * own.scale) && q <= shared_limit<T>;
        scale = max(scale, own.scale);
        const T inverse = is_last ? T(1) : reciprocal(pivot);
        links[s] = {coupling, inverse, s ? own.e * inverse : T(0), is_last ? T(0) : upper * inverse, is_last ? T(0) : e * inverse, beta_first, {}};
        if (is_last) {
            band = {e, pivot, upper, fused(-beta_first, alpha, alpha_first), beta_first * reach, scale, u, max(growth_first, fabs(beta_first) * first)};
        } else {
            const T f = fabs(reach * inverse) * u;
            fine = fine && f <= shared_limit<T>;
            first = max(first, f);
            upper_before = upper * inverse, fill_before = e * inverse, inverse_before = inverse, u_before = u;
            alpha = fused(reach, fill_before, alpha);
            reach *= -upper_before;
            own = next;
        }
    }
    return fine;
}

}  // namespace trifold::cuda
