// SPDX-License-Identifier: BSD-3-Clause
// What a right-hand side sees that reads its target alone, at a point and one point away along an axis: two neighbouring rows in registers, and vectors of those around them.
#pragma once

#include "backends/cuda/mesh/values.cuh"

namespace trifold::cuda {

/// Vectors of R neighbouring points in shared memory, `points` at a time. Lanes are R points apart: where these are an odd number of vectors, eight lanes meet in no bank. Where they are an even one,
/// every second pair of lanes takes two vectors in the other order, so that two meet where four would.
template <class T, int R>
struct LaneVectors {
    static constexpr int V = 16 / static_cast<int>(sizeof(T)), at_once = R / V % 2 ? 1 : 2, points = at_once * V;
    static_assert(R % V == 0);
    using Vector = Values<T, V>;
    using Points = Values<T, points>;
    int order;

    /// lane: of those of a row.
    __device__ __forceinline__ explicit LaneVectors(int lane) : order(at_once == 2 ? lane / 2 % 2 : 0) {}

    __device__ __forceinline__ Points load(const T* from) const {
        Vector vector[at_once];
#pragma unroll
        for (int i = 0; i < at_once; ++i) vector[i] = *reinterpret_cast<const Vector*>(from + (i ^ order) * V);
        Points result;
#pragma unroll
        for (int v = 0; v < V; ++v) {
            result.at[v] = at_once == 2 && order ? vector[at_once - 1].at[v] : vector[0].at[v];
            if (at_once == 2) result.at[points - V + v] = order ? vector[0].at[v] : vector[at_once - 1].at[v];
        }
        return result;
    }
    __device__ __forceinline__ void store(const Points& what, T* to) const {
        Vector vector[at_once];
#pragma unroll
        for (int v = 0; v < V; ++v) {
            vector[0].at[v] = at_once == 2 && order ? what.at[points - V + v] : what.at[v];
            if (at_once == 2) vector[at_once - 1].at[v] = order ? what.at[v] : what.at[points - V + v];
        }
#pragma unroll
        for (int i = 0; i < at_once; ++i) *reinterpret_cast<Vector*>(to + (i ^ order) * V) = vector[i];
    }
};

/// A point of two rows of a lane and what is around it.
template <class C, int V>
struct NearStar {
    using T = typename C::real;
    const T (&own)[2][C::R], (&side)[2][2];          ///< points of the lane, and beyond its first and last one
    const Values<T, V> (&outer)[2], (&low)[2], (&high)[2];  ///< of the rows beside the pair, and of the planes below and above
    int k, i;
    bool second;                                     ///< whether row k is the pair's second one

    template <int f, int dx, int dy, int dz>
    __device__ __forceinline__ T at() const {
        static_assert(f == C::target && dx * dx + dy * dy + dz * dz <= 1, "only a star of the target is there");
        if (dx < 0) return i ? own[k][i ? i - 1 : 0] : side[k][0];
        if (dx > 0) return i < C::R - 1 ? own[k][i < C::R - 1 ? i + 1 : 0] : side[k][1];
        if (dy != 0) {
            const T partner = own[1 - k][i], beside = outer[k].at[i % V];
            return second == (dy < 0) ? partner : beside;
        }
        if (dz < 0) return low[k].at[i % V];
        if (dz > 0) return high[k].at[i % V];
        return own[k][i];
    }
};

}  // namespace trifold::cuda
