// SPDX-License-Identifier: BSD-3-Clause
// The lanes that have a line together, in one warp or in several, and what they hold of its matrix: as reduced.cuh, without right-hand sides.
#pragma once

#include "backends/cuda/mesh/fused/rows.cuh"

#ifdef __CUDACC__

namespace trifold::cuda {

/// Warps of a block that have a line together.
__device__ __forceinline__ void line_barrier(int number, int threads) { asm volatile("barrier.sync %0, %1;" ::"r"(number), "r"(threads) : "memory"); }
__device__ __forceinline__ bool any_of_line(int number, int threads, bool one) {
    unsigned any;
    asm volatile("{\n\t.reg .pred p, q;\n\tsetp.ne.u32 p, %1, 0;\n\tbarrier.red.or.pred q, %2, %3, p;\n\tselp.u32 %0, 1, 0, q;\n\t}" : "=r"(any) : "r"(static_cast<unsigned>(one)), "r"(number), "r"(threads) : "memory");
    return any != 0;
}

}  // namespace trifold::cuda

#endif

namespace trifold::cuda::fused {

/// The L lanes of a line, in one warp or in several: those of each have every warps-th segment, so that all but the next few segments are another lane's of the same warp.
template <class T, int L>
struct Team {
    static constexpr int warps = L > 32 ? L / 32 : 1, wide = L > 32 ? 32 : L, crossings = warps > 2 ? 2 : warps - 1;  ///< the first steps of a reduction, in which warps meet
    static_assert(warps <= 4 && (warps & (warps - 1)) == 0);
    int line, lane, part;  ///< of the block; of its warp's part; warp of the line
    T* slots;              ///< 2 L places

    __device__ __forceinline__ int segment() const { return lane * warps + part; }
    __device__ __forceinline__ void barrier() const {
        if constexpr (warps == 1) warp_barrier();
        else line_barrier(1 + line, 32 * warps);
    }
    /// Of the segments `by` before and after this one. Of two calls one after the other, in which warps meet, one has an odd `turn`.
    template <int by>
    __device__ __forceinline__ void around(T value, T& before, T& after, int turn) const {
        if constexpr (by % warps == 0) {
            before = from_lane(value, (lane + wide - by / warps) % wide, wide), after = from_lane(value, (lane + by / warps) % wide, wide);
        } else {
            T* const own = slots + turn % 2 * L;
            own[segment()] = value;
            barrier();
            before = own[(segment() + L - by) % L], after = own[(segment() + by) % L];
        }
    }
    __device__ __forceinline__ T behind(T value, int turn) const {
        T before, after;
        around<1>(value, before, after, turn);
        return before;
    }
    __device__ __forceinline__ T ahead(T value, int turn) const {
        T before, after;
        around<1>(value, before, after, turn);
        return after;
    }
};

/// ReducedSegment (reduced.cuh) and the reduction of last rows, without right-hand sides.
template <class T, int R, int L, bool Ring>
struct HeldSegment {
    using Own = Team<T, L>;
    static constexpr int steps = L > 64 ? 7 : L > 32 ? 6 : L > 16 ? 5 : L > 8 ? 4 : L > 4 ? 3 : L > 2 ? 2 : 1;
    T inverse[R], lower[R], above[R], up[R], fill[R];
    T joined, by, of[steps], before[steps], after[steps], closed;

    __device__ __forceinline__ void add(int i, const T (&row)[3]) {
        inverse[i] = unforeseen(reciprocal(i ? multiply_add(-row[0], above[i ? i - 1 : 0], row[1]) : row[1]));
        lower[i] = unforeseen(row[0] * inverse[i]), above[i] = unforeseen(row[2] * inverse[i]);
        up[i] = above[i], fill[i] = i ? -lower[i] * fill[i ? i - 1 : 0] : lower[i];
    }

    /// Once all rows are there.
    __device__ __forceinline__ void join(const Own& team) {
#pragma unroll
        for (int i = R - 3; i >= 0; --i) fill[i] = multiply_add(-above[i], fill[i + 1], fill[i]), up[i] = -above[i] * up[i + 1];
#pragma unroll
        for (int i = 0; i < R; ++i) up[i] = unforeseen(up[i]), fill[i] = unforeseen(fill[i]);
        joined = up[R - 1];
        by = unforeseen(reciprocal(multiply_add(-joined, team.ahead(fill[0], 0), T(1))));
        T low = fill[R - 1] * by, high = -joined * team.ahead(up[0], 1) * by;
        reduce<0>(team, low, high);
        closed = Ring ? unforeseen(reciprocal(T(1) + low + high)) : T(1);
    }

    __device__ __forceinline__ void solve(T (&d)[R], const Own& team) const {
#pragma unroll
        for (int i = 0; i < R; ++i) d[i] = i ? multiply_add(-lower[i], d[i ? i - 1 : 0], d[i] * inverse[i]) : d[i] * inverse[i];
#pragma unroll
        for (int i = R - 3; i >= 0; --i) d[i] = multiply_add(-above[i], d[i + 1], d[i]);
        T last = multiply_add(-joined, team.ahead(d[0], 0), d[R - 1]) * by;
        reduce<0>(team, last);
        if constexpr (Ring) last *= closed;
        const T behind = team.behind(last, Own::crossings + 1);
#pragma unroll
        for (int i = 0; i < R - 1; ++i) d[i] = multiply_add(-up[i], last, multiply_add(-fill[i], behind, d[i]));
        d[R - 1] = last;
    }

private:
    template <int k>
    __device__ __forceinline__ void reduce(const Own& team, T& low, T& high) {
        if constexpr (k < steps) {
            T low_before, low_after, high_before, high_after;
            team.template around<1 << k>(low, low_before, low_after, 0);
            team.template around<1 << k>(high, high_before, high_after, 1);
            of[k] = unforeseen(reciprocal(multiply_add(-low, high_before, multiply_add(-high, low_after, T(1)))));
            before[k] = unforeseen(low * of[k]), after[k] = unforeseen(high * of[k]);
            low = -before[k] * low_before, high = -after[k] * high_after;
            reduce<k + 1>(team, low, high);
        }
    }
    template <int k>
    __device__ __forceinline__ void reduce(const Own& team, T& last) const {
        if constexpr (k < steps) {
            T one, other;
            team.template around<1 << k>(last, one, other, k + 1);
            last = multiply_add(-before[k], one, multiply_add(-after[k], other, last * of[k]));
            reduce<k + 1>(team, last);
        }
    }
};

}  // namespace trifold::cuda::fused
