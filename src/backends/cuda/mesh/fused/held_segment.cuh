// SPDX-License-Identifier: BSD-3-Clause
// What the lanes of a line hold of its matrix, once it is eliminated and its segments' last rows are reduced: as reduced.cuh, without right-hand sides.
#pragma once

#include "backends/cuda/mesh/fused/rows.cuh"

namespace trifold::cuda::fused {

/// The part of a lane, of L.
template <class T, int R, int L, bool Ring>
struct HeldSegment {
    static constexpr int steps = L > 16 ? 5 : L > 8 ? 4 : L > 4 ? 3 : L > 2 ? 2 : 1;
    T inverse[R], lower[R], above[R], up[R], fill[R];
    T joined, by, of[steps], before[steps], after[steps], closed;

    __device__ __forceinline__ void add(int i, const T (&row)[3]) {
        inverse[i] = unforeseen(reciprocal(i ? multiply_add(-row[0], above[i ? i - 1 : 0], row[1]) : row[1]));
        lower[i] = unforeseen(row[0] * inverse[i]), above[i] = unforeseen(row[2] * inverse[i]);
        up[i] = above[i], fill[i] = i ? -lower[i] * fill[i ? i - 1 : 0] : lower[i];
    }

    /// Once all rows are there. Lane: of the line.
    __device__ __forceinline__ void join(int lane) {
#pragma unroll
        for (int i = R - 3; i >= 0; --i) fill[i] = multiply_add(-above[i], fill[i + 1], fill[i]), up[i] = -above[i] * up[i + 1];
#pragma unroll
        for (int i = 0; i < R; ++i) up[i] = unforeseen(up[i]), fill[i] = unforeseen(fill[i]);
        joined = up[R - 1];
        by = unforeseen(reciprocal(multiply_add(-joined, ahead(fill[0], lane), T(1))));
        T low = fill[R - 1] * by, high = -joined * ahead(up[0], lane) * by;
        reduce<0>(lane, low, high);
        closed = Ring ? unforeseen(reciprocal(T(1) + low + high)) : T(1);
    }

    __device__ __forceinline__ void solve(T (&d)[R], int lane) const {
#pragma unroll
        for (int i = 0; i < R; ++i) d[i] = i ? multiply_add(-lower[i], d[i ? i - 1 : 0], d[i] * inverse[i]) : d[i] * inverse[i];
#pragma unroll
        for (int i = R - 3; i >= 0; --i) d[i] = multiply_add(-above[i], d[i + 1], d[i]);
        T last = multiply_add(-joined, ahead(d[0], lane), d[R - 1]) * by;
        reduce<0>(lane, last);
        if constexpr (Ring) last *= closed;
        const T before_it = behind(last, lane);
#pragma unroll
        for (int i = 0; i < R - 1; ++i) d[i] = multiply_add(-up[i], last, multiply_add(-fill[i], before_it, d[i]));
        d[R - 1] = last;
    }

private:
    /// Of the segments `by` before and after this one.
    static __device__ __forceinline__ T behind(T value, int lane, int by = 1) { return from_lane(value, (lane + L - by) % L, L); }
    static __device__ __forceinline__ T ahead(T value, int lane, int by = 1) { return from_lane(value, (lane + by) % L, L); }

    template <int k>
    __device__ __forceinline__ void reduce(int lane, T& low, T& high) {
        if constexpr (k < steps) {
            const T low_before = behind(low, lane, 1 << k), low_after = ahead(low, lane, 1 << k), high_before = behind(high, lane, 1 << k), high_after = ahead(high, lane, 1 << k);
            of[k] = unforeseen(reciprocal(multiply_add(-low, high_before, multiply_add(-high, low_after, T(1)))));
            before[k] = unforeseen(low * of[k]), after[k] = unforeseen(high * of[k]);
            low = -before[k] * low_before, high = -after[k] * high_after;
            reduce<k + 1>(lane, low, high);
        }
    }
    template <int k>
    __device__ __forceinline__ void reduce(int lane, T& last) const {
        if constexpr (k < steps) {
            const T one = behind(last, lane, 1 << k), other = ahead(last, lane, 1 << k);
            last = multiply_add(-before[k], one, multiply_add(-after[k], other, last * of[k]));
            reduce<k + 1>(lane, last);
        }
    }
};

}  // namespace trifold::cuda::fused
