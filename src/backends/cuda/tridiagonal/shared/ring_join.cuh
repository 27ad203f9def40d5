// SPDX-License-Identifier: BSD-3-Clause
// The last unknowns of consecutive pieces of a ring, as in join.cuh, where the first piece comes after the last one. The last piece's row is eliminated last, and until then its unknown is known to
// all others as `fill`:
//
//   gamma[s] = inverse (y[s] - coupling z[s+1]) - lower gamma[s-1]                              forwards, s < S - 1
//   x[S-1]   = inverse (y[S-1] - coupling z[0] - Σ weight[s] gamma[s])
//   x[s]     = gamma[s] - upper x[s+1] - fill[s] x[S-1]                                         backwards
//
// Numerics: the order of elimination is one more than join.cuh's; |L||U| of the last row is summed over all pieces. Where rows are dominant, weights and couplings of pieces are so small that few rows
// are refused for it.
#pragma once

#include "backends/cuda/tridiagonal/shared/join.cuh"

namespace trifold::cuda {

/// Of a piece but the last one: how its unknown depends on the last one's, and how the last row depends on it. They lie behind the joins.
template <class T>
struct alignas(2 * sizeof(T)) Closing {
    T fill, weight;
};

template <class T>
__device__ __forceinline__ Closing<T>* closings(const Join<T>* join, int pieces) { return reinterpret_cast<Closing<T>*>(const_cast<Join<T>*>(join + pieces)); }

/// By one thread. False where it is not safe.
template <class T>
__device__ __forceinline__ bool factor_ring_join(const SegmentEnds<T>* ends, int pieces, Join<T>* join) {
    Closing<T>* const closing = closings(join, pieces);
    const int last = pieces - 1;
    bool fine = true;
    T upper = 0, fill = 0, weight = 0, inverse = 0, u_before = 0;   // of the piece before
    T last_pivot = 0, last_growth = 0;
#pragma unroll 1
    for (int s = 0; s < pieces; ++s) {
        const SegmentEnds<T> own = ends[s], next = ends[s < last ? s + 1 : 0];
        const T p = fused(-own.c, next.alpha, own.p), above = -own.c * next.beta;
        const T grown = max(own.last, fabs(own.c) * next.first_growth);
        if (s == last) {
            // Its upper neighbour and its lower one have been eliminated, but where it is alone.
            const T pivot = p + (pieces == 1 ? own.e + above : T(0)) - last_pivot;
            const T one_over = reciprocal(pivot), q = max(fabs(pivot) + last_growth, grown);
            fine = fine && q <= T(accepted_growth) * own.scale && q <= shared_limit<T> && fabs(one_over) <= shared_limit<T>;
            join[s] = {own.c, T(0), one_over, T(0)};
            closing[s] = {T(0), T(0)};
            break;
        }
        const bool beside = s + 1 == last;  // what comes after it is the last one
        const T lower = s ? own.e : T(0), pivot = fused(-lower, upper, p);
        const T filled = (s ? -lower * fill : own.e) + (beside ? above : T(0)), coupled = beside ? T(0) : above;
        const T u = fabs(pivot) + fabs(coupled) + fabs(filled), q = max(fused(fabs(lower * inverse), u_before, u), grown);
        const T one_over = reciprocal(pivot);
        fine = fine && q <= T(accepted_growth) * own.scale && q <= shared_limit<T> && fabs(one_over) <= shared_limit<T>;
        // What is left of the last row's coupling to the first piece goes on to the next one.
        const SegmentEnds<T> end = ends[last];
        weight = s ? -weight * upper : -end.c * ends[0].beta;
        if (beside) weight += end.e;
        inverse = one_over, upper = coupled * one_over, fill = filled * one_over, u_before = u;
        last_pivot = fused(weight, fill, last_pivot), last_growth += fabs(weight * one_over) * u;
        join[s] = {own.c, lower * one_over, one_over, upper};
        closing[s] = {fill, weight};
    }
    return fine && last_growth <= shared_limit<T>;
}

/// The unknowns of the last rows of one ring's segments, by one thread: they replace their right-hand sides `last`. at_once: loads that do not wait for each other.
template <int at_once, class T>
__device__ __forceinline__ void solve_ring_join(const Join<T>* join, T* last, const T* first, int segments, int across) {
    const Closing<T>* const closing = closings(join, segments);
    const int all = segments - 1;
    T gamma = 0, next = 0, known = fused(-join[all].coupling, first[0], last[all * across]);
#pragma unroll 1
    for (int s = 0; s < all; s += at_once) {
        T end[at_once], begin[at_once], weight[at_once];
        Join<T> j[at_once];
#pragma unroll
        for (int k = 0; k < at_once; ++k)
            if (s + k < all) end[k] = last[(s + k) * across], begin[k] = first[(s + k + 1) * across], j[k] = join[s + k], weight[k] = closing[s + k].weight;
#pragma unroll
        for (int k = 0; k < at_once; ++k)
            if (s + k < all) {
                gamma = fused(-j[k].lower, gamma, fused(-j[k].coupling, begin[k], end[k]) * j[k].inverse);
                known = fused(-weight[k], gamma, known);
                last[(s + k) * across] = gamma;
            }
    }
    const T x = known * join[all].inverse;
    last[all * across] = x;
#pragma unroll 1
    for (int s = all - 1; s >= 0; s -= at_once) {
        T end[at_once], upper[at_once];
#pragma unroll
        for (int k = 0; k < at_once; ++k)
            if (s >= k) end[k] = fused(-closing[s - k].fill, x, last[(s - k) * across]), upper[k] = join[s - k].upper;
#pragma unroll
        for (int k = 0; k < at_once; ++k)
            if (s >= k) {
                next = fused(-upper[k], next, end[k]);
                last[(s - k) * across] = next;
            }
    }
}

/// A segment of `rows` < R rows as a whole one: its last row's right-hand side becomes that of row R - 1. Those between are 0 x[i] of nothing: factors that say so are set by `stretch_factors`.
template <class T, int R>
__device__ __forceinline__ void stretch_rows(int rows, T (&y)[R]) {
#pragma unroll
    for (int i = 0; i + 1 < R; ++i)
        if (i + 1 >= rows) y[i + 1] = y[i], y[i] = T(0);
}

/// Rows that `factor_segment` has not set: their unknowns are the last one's. `set` as its.
template <int R, class T, class Rows>
__device__ __forceinline__ void stretch_factors(Rows& rows, int own, T last_lower) {
#pragma unroll 1
    for (int i = own - 1; i < R; ++i) rows.set(i, i + 1 == own ? T(1) : T(0), i + 1 == own ? last_lower : T(0), T(-1), T(0));
}

}  // namespace trifold::cuda
