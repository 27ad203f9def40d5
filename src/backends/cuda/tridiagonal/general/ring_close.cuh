// SPDX-License-Identifier: BSD-3-Clause
// A ring of rows over the lanes of a warp: what is beyond both of its ends is known by closing it.
//
// Lanes without rows hand on what comes after them (x[l] = x[l+1]), so that the last row finds the first one there, and `before` is the last row's unknown p, `after`
// the first row's s. Of a warp that is reduced (lanes.cuh) both are linear in p and s: two equations. The answers to p = 1 and to s = 1 alone are found like
// x, without the right-hand side, so that nothing cancels.
#pragma once

#include "backends/cuda/tridiagonal/warp/lanes.cuh"

namespace trifold::cuda {

/// of(p, s) = known + p by_before + s by_after
template <class T>
struct Linear {
    T known, by_before, by_after;

    __device__ __forceinline__ T of(T p, T s) const { return fused(by_after, s, fused(by_before, p, known)); }
    __device__ __forceinline__ Linear from(int lane) const { return {__shfl_sync(~0u, known, lane), __shfl_sync(~0u, by_before, lane), __shfl_sync(~0u, by_after, lane)}; }
};

/// As Quads::substitute, of rows whose right-hand side is 0.
template <class T, int Lanes>
__device__ __forceinline__ T respond(const Quads<T, Lanes>& quads, T before, T x, int lane) {
    const int row = lane & (Lanes - 1), quad = row >> 2;
    const T last = __shfl_sync(~0u, x, quad), previous = __shfl_sync(~0u, x, quad ? quad - 1 : 0);
    const T inner = fused(-quads.at[Lanes + row], last, -quads.at[row] * (quad ? previous : before));
    return (row & 3) == 3 ? last : inner;
}

/// A lane's last unknown, and that of the lane before, in terms of what is before and after the warp.
template <class T>
struct LaneEnds {
    Linear<T> left, own;

    /// rows: reduced to `last`.
    __device__ __forceinline__ LaneEnds(const WarpRows<T>& rows, const Relation<T>& last, int lane) {
        own.known = rows.substitute(T(0), last.d, lane, left.known);
        const auto answer = [&](T before, T x, T& to_left) {
            const T two = lane & 1 ? x : fused(-rows.low[1], x, -rows.low[0] * before);
            const T mine = respond(rows.quads, before, respond(rows.pairs, before, two, lane), lane);
            const T above = __shfl_up_sync(~0u, mine, 1);
            to_left = lane ? above : before;
            return mine;
        };
        own.by_before = answer(T(1), -last.a, left.by_before);
        own.by_after = answer(T(0), -last.c, left.by_after);
    }
};

/// The ring's last unknown and its first one.
template <class T>
struct RingEnds {
    T last, first;
};

/// first, whole: what is left of the warp's first and last row; end: the ring's last unknown.
template <class T>
__device__ __forceinline__ RingEnds<T> close_ring(const Relation<T>& first, const Relation<T>& whole, const Linear<T>& end) {
    const T k = finite_or_zero(reciprocal(fused(-first.c, whole.c, T(1))));
    const T known = fused(-first.c, whole.d, first.d) * k, by_last = fused(first.c, whole.a, -first.a) * k;  // s = known + by_last p
    RingEnds<T> ends;
    ends.last = fused(end.by_after, known, end.known) * finite_or_zero(reciprocal(T(1) - end.by_before - end.by_after * by_last));
    ends.first = fused(by_last, ends.last, known);
    return ends;
}

}  // namespace trifold::cuda
