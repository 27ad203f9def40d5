// SPDX-License-Identifier: BSD-3-Clause
// Segments of lines whose matrices are made where they are eliminated, and used once.
//
// A row after the other becomes x[i] + up[i] x[i+1] + fill[i] before = d[i], `before` being the last row of the segment before; then, from the last one back, every row an equation in `before` and in the segment's own last row alone. The
// last rows are a tridiagonal system with ones on its diagonal and a row per segment, which is solved by cyclic reduction of all rows in every step (R. W. Hockney 1965): one step joins
// neighbours that are 1, 2, 4, … segments away.
// Numerics: no pivots; matrices are dominated by their diagonals, strictly (pass.cuh, check), so are the last rows' and those of every step. Reciprocals to two ulp (rough.cuh).
#pragma once

#include "backends/cuda/mesh/fused/rough.cuh"
#include "backends/cuda/mesh/resident/blocks.cuh"

namespace trifold::cuda::fused {

/// A row of the last rows' system: low x[s-1] + x[s] + high x[s+1] = last.
template <class T>
struct LastRow {
    T low, high, last;

    /// With what the rows `before` and `after` say, one step further.
    __device__ __forceinline__ void reduce(const LastRow& before, const LastRow& after) {
        const T inverse = reciprocal(multiply_add(-low, before.high, multiply_add(-high, after.low, T(1)))), a = low * inverse, c = high * inverse;
        last = multiply_add(-a, before.last, multiply_add(-c, after.last, last * inverse));
        low = -a * before.low, high = -c * after.high;
    }
    /// Of a ring, once all rows are neighbours of themselves.
    __device__ __forceinline__ void close() { last *= reciprocal(T(1) + low + high); }
};

template <class T, int R>
struct ReducedSegment {
    T d[R], up[R], fill[R];

    /// Row i; one after the other.
    __device__ __forceinline__ void add(int i, const T (&row)[3], T right) {
        const T inverse = reciprocal(i ? multiply_add(-row[0], up[i ? i - 1 : 0], row[1]) : row[1]), lower = row[0] * inverse;
        up[i] = row[2] * inverse;
        d[i] = i ? multiply_add(-lower, d[i ? i - 1 : 0], right * inverse) : right * inverse;
        fill[i] = i ? -lower * fill[i ? i - 1 : 0] : lower;
    }

    __device__ __forceinline__ void turn_back() {
#pragma unroll
        for (int i = R - 3; i >= 0; --i) {
            d[i] = multiply_add(-up[i], d[i + 1], d[i]);
            fill[i] = multiply_add(-up[i], fill[i + 1], fill[i]);
            up[i] = -up[i] * up[i + 1];
        }
    }

    /// What the segment after this one needs to know of its first row.
    __device__ __forceinline__ LastRow<T> first() const { return {fill[0], up[0], d[0]}; }
    /// With the first row of the segment after it; where a line ends, up of its last row is zero.
    __device__ __forceinline__ LastRow<T> last_row(const LastRow<T>& next) const {
        const T own = up[R - 1], inverse = reciprocal(multiply_add(-own, next.low, T(1)));
        return {fill[R - 1] * inverse, -own * next.high * inverse, multiply_add(-own, next.last, d[R - 1]) * inverse};
    }

    __device__ __forceinline__ void finish(T before, T last) {
#pragma unroll
        for (int i = 0; i < R - 1; ++i) d[i] = multiply_add(-up[i], last, multiply_add(-fill[i], before, d[i]));
        d[R - 1] = last;
    }
};

}  // namespace trifold::cuda::fused
