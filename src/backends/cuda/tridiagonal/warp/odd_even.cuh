// SPDX-License-Identifier: BSD-3-Clause
// `Width` rows, one per lane, become one: every other one is put into its neighbours, then every other one of those
// that are left …
//
//   x[l] = d - a x[l-1] - c x[l+1],   l = 0 … Width-1;  x[-1] is `before`, x[Width] `after`
//
// What is left is the last row, in x[-1] and x[Width]; a row that has been put into others stays in its lane, in the
// unknowns s before and s after it, and gives x on the way back. One division per level and lane, no shared memory.
// This is elimination in another order (cyclic reduction: R. W. Hockney, 1965), not parallel cyclic reduction: no
// unknown is computed twice. Where row sums are nearly zero a row over m rows of the system is rounded by 1/m of what
// those rows are; the first levels need them carried along (1 - |a| - |c|, of which and of |a|, |c| the pivot is a sum
// without cancellation), where the products of couplings that face each other are positive.
#pragma once

#include "backends/cuda/tridiagonal/warp/lanes.cuh"

namespace trifold::cuda {

template <class T>
__device__ __forceinline__ Relation<T> from_above(const Relation<T>& row, int by, int width) {
    return {__shfl_up_sync(~0u, row.a, by, width), __shfl_up_sync(~0u, row.c, by, width),
            __shfl_up_sync(~0u, row.d, by, width)};
}
template <class T>
__device__ __forceinline__ Relation<T> from_below(const Relation<T>& row, int by, int width) {
    return {__shfl_down_sync(~0u, row.a, by, width), __shfl_down_sync(~0u, row.c, by, width),
            __shfl_down_sync(~0u, row.d, by, width)};
}

template <class T, int Width>
struct OddEven {
    /// All lanes of the warp, in groups of Width; lane: within the group.
    __device__ __forceinline__ static void reduce(Relation<T>& own, int lane) {
        T none = 0;
        reduce<false>(own, none, lane);
    }

    template <bool Sums>
    __device__ __forceinline__ static void reduce(Relation<T>& own, T& sum, int lane) {
        Relation<T> none;
        T no_sum = 0;
        reduce<Sums, false>(own, sum, lane, none, no_sum, T(0));
    }

    template <bool Sums, bool Whole>
    __device__ __forceinline__ static int reduce(Relation<T>& own, T& sum, int lane, Relation<T>& first, T negligible) {
        T no_sum = 0;
        return reduce<Sums, Whole>(own, sum, lane, first, no_sum, negligible);
    }

    /// sum: 1 - |a| - |c| of the row, carried along where Sums. Whole: `first`, of the first lane's first unknown, in x before it and
    /// x of that lane, becomes the same in x before it and the last one, beside the levels; and where what is left of the
    /// couplings between rows is at most `negligible`, they are not joined; first_sum goes along with it as `sum` does. Returns how far apart rows then are, for substitute.
    template <bool Sums, bool Whole>
    __device__ __forceinline__ static int reduce(Relation<T>& own, T& sum, int lane, Relation<T>& first, T& first_sum, T negligible) {
        int apart = Width;
        const bool last = lane == Width - 1;
        T out = last ? own.c : T(0);  // on the unknown after the last one; goes along by itself
        if (last) own.c = 0;
#pragma unroll
        for (int s = 1; s < Width; s *= 2) {
            if constexpr (Whole) {
                if constexpr (Sums) first_sum = fused(fabs(first.c), __shfl_sync(~0u, sum, s - 1), first_sum);
                first = through(first, of_lane(own, s - 1));
                const bool left = (lane & (s - 1)) == s - 1;
                if (s >= 4 && __all_sync(~0u, !left || (fabs(own.a) <= negligible && fabs(own.c) <= negligible))) {
                    first.c = 0, apart = s;
                    if (left) own.a = own.c = 0;
                    break;
                }
            }
            const Relation<T> above = from_above(own, s, Width), below = from_below(own, s, Width);
            T pivot = fused(-own.c, below.a, fused(-own.a, above.c, T(1)));
            T left_over;
            if constexpr (Sums) {
                const T sum_above = __shfl_up_sync(~0u, sum, s, Width), sum_below = __shfl_down_sync(~0u, sum, s, Width);
                left_over = fused(fabs(own.c), sum_below, fused(fabs(own.a), sum_above, sum));
                const T beside = fused(fabs(own.c), fabs(below.c), fused(fabs(own.a), fabs(above.a), fabs(out)));
                pivot = left_over + beside;
            }
            const Divisor<T> by(pivot);
            if constexpr (Sums)
                if ((lane & (2 * s - 1)) == 2 * s - 1) sum = by.of(left_over);
            const Relation<T> left{by.of(-own.a * above.a), by.of(-own.c * below.c),
                                   by.of(fused(-own.c, below.d, fused(-own.a, above.d, own.d)))};
            out = by.of(out);
            if ((lane & (2 * s - 1)) == 2 * s - 1) own = left;
        }
        if (last) own.c = out;
        return apart;
    }

    /// Rows that the first unknown of lane From leads through, one after the other, to the last one.
    __host__ __device__ static constexpr int next(int lane) {
        return lane + (~lane & (lane + 1));
    }

    /// `first` in x before lane From and x of that lane becomes the same in x before it and the last one.
    template <int From>
    __device__ __forceinline__ static Relation<T> through_all(Relation<T> first, const Relation<T>& own) {
#pragma unroll
        for (int l = From; l != Width - 1; l = next(l)) first = through(first, of_lane(own, l));
        return first;
    }

    /// x of every lane from the last one; apart: as `reduce` has left them.
    __device__ __forceinline__ static T substitute(const Relation<T>& own, T before, T last, int lane, int apart = Width) {
        T x =
            lane == Width - 1 ? last : before;  // a lane that nothing is above of gets its own, which is `before` still
        if (apart < Width && lane < Width - 1 && (lane & (apart - 1)) == apart - 1) x = own.d;
#pragma unroll
        for (int s = Width / 2; s > 0; s /= 2) {
            if (s >= apart) continue;
            const T above = __shfl_up_sync(~0u, x, s, Width), below = __shfl_down_sync(~0u, x, s, Width);
            const T here = fused(-own.c, below, fused(-own.a, above, own.d));
            if ((lane & (2 * s - 1)) == s - 1) x = here;
        }
        return x;
    }
};

}  // namespace trifold::cuda
