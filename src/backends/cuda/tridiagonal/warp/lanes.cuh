// SPDX-License-Identifier: BSD-3-Clause
// One warp joins its lanes' chunks: 32 rows, one per lane, become two relations between the warp's first and last unknown and
// its neighbours', and once these are known, every lane learns its own two.
//
//   x[l] = d - a x[l-1] - c x[l+1],   l = 0 … 31;  x[-1] is `before` (the last unknown of the warp before), x[32] `after` (the first
//   unknown of the warp after).
//
// Eight lanes take four rows each, two of them the eight rows that are left, and everybody the last two: elimination and back
// substitution all the way, by chunk.cuh. Not parallel cyclic reduction, which is as fast but not backward stable where rows sum to
// nearly zero: neighbouring unknowns then differ by errors that grow with the condition number. 124 words of shared memory.
#pragma once

#include "backends/cuda/tridiagonal/thread/chunk.cuh"

namespace trifold::cuda {

template <class T>
__device__ __forceinline__ Relation<T> of_lane(const Relation<T>& row, int lane) {
    return {__shfl_sync(~0u, row.a, lane), __shfl_sync(~0u, row.c, lane), __shfl_sync(~0u, row.d, lane)};
}

/// `last` of every lane closed with `first` of the next one among `width`; the last of them keeps its own.
template <class T>
__device__ __forceinline__ Relation<T> join(const Relation<T>& first, const Relation<T>& last, int lane, int width) {
    const Relation<T> next{__shfl_down_sync(~0u, first.a, 1, width), __shfl_down_sync(~0u, first.c, 1, width), __shfl_down_sync(~0u, first.d, 1, width)};
    const Relation<T> closed = close(last, next);
    return (lane & (width - 1)) == width - 1 ? last : closed;
}

/// y = d - a before - c z, with z = d' - a' before - c' z'.
template <class T>
__device__ __forceinline__ Relation<T> through(const Relation<T>& y, const Relation<T>& z) {
    return {fused(-y.c, z.a, y.a), -y.c * z.c, fused(-y.c, z.d, y.d)};
}

/// `Lanes` rows, one per lane, become Lanes / 4, by the first Lanes / 4 lanes; the rows stay in shared memory.
template <class T, int Lanes>
struct Quads {
    T* at;

    static constexpr int words = 3 * Lanes;

    __device__ __forceinline__ Relation<T> reduce(const Relation<T>& own, int lane, Relation<T>& first) const {
        if (lane < Lanes) at[lane] = own.a, at[Lanes + lane] = own.c, at[2 * Lanes + lane] = own.d;
        __syncwarp();
        T* const mine = at + (lane & (Lanes / 4 - 1)) * 4;
        Chunk<T, 4> rows;
#pragma unroll
        for (int i = 0; i < 4; ++i) rows.eliminate(i, {mine[i], mine[Lanes + i], mine[2 * Lanes + i]});
        rows.reduce();
        __syncwarp();
        if (lane < Lanes / 4) {
#pragma unroll
            for (int i = 0; i < 3; ++i) mine[i] = rows.a[i], mine[Lanes + i] = rows.c[i], mine[2 * Lanes + i] = rows.d[i];
        }
        __syncwarp();
        first = rows.first();
        return rows.last();
    }

    /// x: lane p has the last unknown of quad p. Returns that of the lane's own row.
    __device__ __forceinline__ T substitute(T before, T x, int lane) const {
        const int row = lane & (Lanes - 1), quad = row >> 2;
        const T last = __shfl_sync(~0u, x, quad), previous = __shfl_sync(~0u, x, quad ? quad - 1 : 0);
        const T inner = fused(-at[Lanes + row], last, fused(-at[row], quad ? previous : before, at[2 * Lanes + row]));
        return (row & 3) == 3 ? last : inner;
    }
};

template <class T>
struct WarpRows {
    Quads<T, 32> quads;
    Quads<T, 8> pairs;
    T* low;  ///< the first of the last two rows: a, c, d

    static constexpr int few_words = Quads<T, 8>::words + 4, words = Quads<T, 32>::words + few_words;

    __device__ explicit WarpRows(T* memory, bool few = false) : quads{memory}, pairs{memory + (few ? 0 : Quads<T, 32>::words)}, low(pairs.at + Quads<T, 8>::words) {}

    /// first: of the lane's first row; last: of its last one. The same is left of the warp, `warp_first` where it is asked for.
    template <bool First>
    __device__ __forceinline__ Relation<T> reduce(const Relation<T>& first, const Relation<T>& last, int lane, Relation<T>& warp_first) const {
        return reduce_joined<First>(join(first, last, lane, 32), first, lane, warp_first);
    }

    /// joined: `last` closed with the next lane's `first`.
    template <bool First>
    __device__ __forceinline__ Relation<T> reduce_joined(const Relation<T>& joined, const Relation<T>& first, int lane, Relation<T>& warp_first) const {
        Relation<T> first_quad, first_pair;
        const Relation<T> quad = quads.reduce(joined, lane, first_quad);
        const Relation<T> pair = pairs.reduce(join(first_quad, quad, lane, 8), lane, first_pair);
        const Relation<T> own = join(first_pair, pair, lane, 2);
        const Relation<T> one = of_lane(own, 0), two = of_lane(own, 1);
        const T k = finite_or_zero(reciprocal(fused(-two.a, one.c, T(1))));
        if constexpr (First) warp_first = through(through(through(of_lane(first, 0), of_lane(first_quad, 0)), of_lane(first_pair, 0)), one);
        if (lane == 0) low[0] = one.a, low[1] = one.c, low[2] = one.d;
        __syncwarp();
        return {-two.a * one.a * k, two.c * k, fused(-two.a, one.d, two.d) * k};
    }

    /// All there is, nothing before and after: x of the lane's row, and in `left` of the one before. At most 8 rows where Few.
    template <bool Few>
    __device__ __forceinline__ T solve(const Relation<T>& first, const Relation<T>& last, int lane, T& left) const {
        Relation<T> unused;
        if constexpr (!Few) {
            const Relation<T> end = reduce<false>(first, last, lane, unused);
            return substitute(T(0), end.d, lane, left);
        } else {
            const Relation<T> pair = pairs.reduce(join(first, last, lane, 8), lane, unused);
            const Relation<T> own = join(unused, pair, lane, 2), one = of_lane(own, 0), two = of_lane(own, 1);
            const T x1 = fused(-two.a, one.d, two.d) * finite_or_zero(reciprocal(fused(-two.a, one.c, T(1))));
            const T x = pairs.substitute(T(0), lane & 1 ? x1 : fused(-one.c, x1, one.d), lane);
            const T above = __shfl_up_sync(~0u, x, 1);
            left = lane ? above : T(0);
            return x;
        }
    }

    /// The lane's last unknown, and in `left` that of the lane before; x: the warp's last unknown.
    __device__ __forceinline__ T substitute(T before, T x, int lane, T& left) const {
        const T two = lane & 1 ? x : fused(-low[1], x, fused(-low[0], before, low[2]));
        const T own = quads.substitute(before, pairs.substitute(before, two, lane), lane);
        const T above = __shfl_up_sync(~0u, own, 1);
        left = lane ? above : before;
        return own;
    }
};

}  // namespace trifold::cuda
