// SPDX-License-Identifier: BSD-3-Clause
// Lines across the lanes of a warp: `lanes` segments of R points, in as many lanes, of K lines at a time.
//
// As chip.cuh, but what a segment's first row keeps is a sum, z[0] = y[0] + Σ reach[i] y[i], so that it is there when the elimination has gone
// forwards; and the join's two recurrences are scans (P. M. Kogge and H. S. Stone 1973): with m[s] = -lower[s],
//   gamma[s] = r[s] + m[s] gamma[s-1]:   gamma += M gamma(s - 2^k), M[s] <- M[s] M[s - 2^k], k = 0, 1, …
// which multiplies by the inverse of the join's factors: the host refuses factors L for which |L||L^-1| is large (line_table.hpp).
#pragma once

#include "backends/cuda/mesh/streaming/chip.cuh"

namespace trifold::cuda::streaming {

template <class T>
struct Pair;
template <>
struct Pair<float> {
    using type = float2;
};
template <>
struct Pair<double> {
    using type = double2;
};

/// The table of line_table.hpp for lanes, in shared memory: {inverse, lower} by row and segment, {upper, fill}, reach, and the join. `alike`: of all segments
/// between the first one and the last the same, kept once, so that lanes ask for the same words. `ring`: how it is closed follows.
template <class T, int R, int lanes, bool alike, bool ring>
struct LaneFactors {
    using Pair = typename streaming::Pair<T>::type;
    static constexpr int tables = alike ? 3 : lanes, rows = aligned<T>(5 * R * tables), in_memory = rows + (ring ? 4 + closing_words : 4) * lanes;
    const Pair *ahead, *back;
    const T *reach, *joins;

    /// Copied by all threads of a block; there after its next barrier.
    __device__ __forceinline__ LaneFactors(T* memory, const T* table, int thread, int threads) {
        using Vector = typename Vector16<T>::type;
        static_assert(in_memory % vector_values<T> == 0);
        for (int i = thread; i < in_memory / vector_values<T>; i += threads) reinterpret_cast<Vector*>(memory)[i] = reinterpret_cast<const Vector*>(table)[i];
        ahead = reinterpret_cast<const Pair*>(memory), back = ahead + R * tables;
        reach = memory + 4 * R * tables, joins = memory + rows;
    }

    static __device__ __forceinline__ int table_of(int segment, int segments) { return !alike ? segment : segment == 0 || segment >= segments ? 0 : segment == segments - 1 ? 2 : 1; }

    template <int K>
    __device__ __forceinline__ void forwards(T (&y)[K][R], T (&z)[K], int table) const {
#pragma unroll
        for (int i = 0; i < R; ++i) {
            const Pair f = ahead[i * tables + table];
            const T reached = i < R - 1 ? reach[i * tables + table] : T(0);
#pragma unroll
            for (int k = 0; k < K; ++k) {
                y[k][i] = i ? multiply_add(-f.y, y[k][i ? i - 1 : 0], y[k][i] * f.x) : y[k][0] * f.x;
                if (i == 0) z[k] = R > 1 ? reached * y[k][0] : T(0);
                else if (i < R - 1) z[k] = multiply_add(reached, y[k][i], z[k]);
            }
        }
    }

    template <int K>
    __device__ __forceinline__ void backwards(T (&y)[K][R], const T (&before)[K], const T (&last)[K], int table) const {
#pragma unroll
        for (int k = 0; k < K; ++k) y[k][R - 1] = last[k];
#pragma unroll
        for (int i = R - 2; i >= 0; --i) {
            const Pair f = back[i * tables + table];
#pragma unroll
            for (int k = 0; k < K; ++k) y[k][i] = multiply_add(-f.x, y[k][i + 1], multiply_add(-f.y, before[k], y[k][i]));
        }
    }
};

/// Segments' ends: from the last row of each and what the first rows keep, the solution in the last rows of each segment and of the one before. ring_segments: of a ring, how many there are; 0: no ring.
template <class T, int lanes, int ring_segments = 0>
struct LaneJoin {
    static constexpr int steps = lanes == 32 ? 5 : lanes == 16 ? 4 : lanes == 8 ? 3 : lanes == 4 ? 2 : lanes == 2 ? 1 : 0;
    T coupling, inverse, up[steps + 1], down[steps + 1];
    const T* closing;
    bool begins;  ///< whether this is the first segment

    /// By all lanes of a warp. joins: per segment coupling, lower, inverse, upper.
    __device__ __forceinline__ LaneJoin(const T* joins, int segment) {
        coupling = joins[4 * segment], inverse = joins[4 * segment + 2];
        closing = joins + 4 * lanes + closing_words * segment, begins = segment == 0;
        T m = -joins[4 * segment + 1], n = -joins[4 * segment + 3];
#pragma unroll
        for (int k = 0; k < steps; ++k) {
            const int apart = 1 << k;
            up[k] = segment >= apart ? m : T(0), down[k] = segment + apart < lanes ? n : T(0);
            const T further = __shfl_up_sync(~0u, up[k], apart, lanes), nearer = __shfl_down_sync(~0u, down[k], apart, lanes);
            m = up[k] * further, n = down[k] * nearer;
        }
    }

    __device__ __forceinline__ void solve(T last, T first, T& x, T& before) const {
        const T next = __shfl_down_sync(~0u, first, 1, lanes);
        x = multiply_add(-coupling, next, last) * inverse;
#pragma unroll
        for (int k = 0; k < steps; ++k) x = multiply_add(up[k], __shfl_up_sync(~0u, x, 1 << k, lanes), x);
#pragma unroll
        for (int k = 0; k < steps; ++k) x = multiply_add(down[k], __shfl_down_sync(~0u, x, 1 << k, lanes), x);
        if constexpr (ring_segments > 0) {
            const T own = multiply_add(closing[0], first, closing[1] * x), s = __shfl_sync(~0u, own, 0, lanes) + __shfl_sync(~0u, own, ring_segments - 1, lanes);
            x = multiply_add(-closing[2], s, x);
            before = __shfl_up_sync(~0u, x, 1, lanes);
            if (begins) before = s;
        } else {
            before = __shfl_up_sync(~0u, x, 1, lanes);
        }
    }
};

}  // namespace trifold::cuda::streaming
