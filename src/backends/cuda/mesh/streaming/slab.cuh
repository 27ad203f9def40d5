// SPDX-License-Identifier: BSD-3-Clause
// Where the rows of a slab lie in shared memory, plane by plane, and what a right-hand side sees of them (rows.cuh).
#pragma once

#include "backends/cuda/mesh/points.cuh"
#include "backends/cuda/mesh/star.cuh"
#include "backends/cuda/mesh/streaming/lanes.cuh"

namespace trifold::cuda::streaming {

template <class C>
__device__ __forceinline__ int mirror_index(int f, int axis, int i, int n) {
    if (i < 0) return C::edge(f, axis, 0) == edge_periodic ? i + n : -1 - i;
    if (i >= n) return C::edge(f, axis, 1) == edge_periodic ? i - n : 2 * n - 1 - i;
    return i;
}

/// The axis along which blocks go, and that across it, of which they have a slab.
template <class C>
struct RowsAxes {
    static constexpr int across = 3 - C::along;
    static constexpr int n_along = C::along == 2 ? C::nz : C::ny, n_across = C::along == 2 ? C::ny : C::nz;
    static constexpr int reach_along = C::along == 2 ? C::reach_z : C::reach_y, reach_across = C::along == 2 ? C::reach_y : C::reach_z;
    static constexpr int along_apart = C::along == 2 ? C::nx * C::ny : C::nx, across_apart = C::along == 2 ? C::nx : C::nx * C::ny;  // of values

    static __device__ __forceinline__ int y(int at_along, int at_across) { return C::along == 2 ? at_across : at_along; }
    static __device__ __forceinline__ int z(int at_along, int at_across) { return C::along == 2 ? at_along : at_across; }
};

/// Shared memory of a block, in elements: rows of a place have room for values beyond their ends.
template <class C>
struct RowsLayout {
    using T = typename C::real;
    static constexpr int V = vector_values<T>, beside = (2 * C::reach_x + V - 1) / V * V;
    static constexpr int warp_rows = 32 / C::lanes * C::K, H = C::warps * warp_rows, rows = H + 2 * RowsAxes<C>::reach_across;
    static constexpr int field = beside + rows * C::pitch, place = field * C::staged_count;
    static constexpr int out = C::depth * place, ring = out + (C::apart ? H * C::pitch : 0), factors = LaneFactors<T, C::R, C::lanes, C::alike, C::ring_x>::in_memory, kept = factors + 2 * (C::depth + C::warps) * 8 / static_cast<int>(sizeof(T));

    /// Of a staged field in a place: its row 0 of the slab.
    static constexpr int origin(int f) {
        int before = 0;
        for (int g = 0; g < f; ++g) before += static_cast<int>(C::staged >> g & 1);
        return before * field + beside + RowsAxes<C>::reach_across * C::pitch;
    }
};

/// Rows and points around those of a lane: `at_across` and `at_along` are where its first row is. Inside: no neighbour lies beyond a side of y or z.
template <class C, bool Inside>
struct NearStaged {
    using T = typename C::real;
    const MeshArguments<T>& a;
    const T* const (&plane)[5];  ///< of planes -2 … 2 away: where the lane's first point would be in row 0 of a place
    int k, i, at_across, at_along;
    bool first, last;             ///< whether the lane's points are the first or the last of their row

    template <int f, int dx, int dy, int dz>
    __device__ __forceinline__ T at() const {
        using Axes = RowsAxes<C>;
        const T* const row = plane[(C::along == 2 ? dz : dy) + 2] + RowsLayout<C>::origin(f) + (k + (C::along == 2 ? dy : dz)) * C::pitch;
        const int j = i + dx;
        T value;
        if (dx < 0 && j < 0) value = beyond<f, 0>(row, j, -1 - j, first, C::nx);
        else if (dx > 0 && j >= C::R) value = beyond<f, 1>(row, j, 2 * C::R - 1 - j, last, -C::nx);
        else value = row[j];
        if constexpr (!Inside) {
            value = mirrored<f, 1, dy>(Axes::y(at_along, at_across + k), C::ny, value);
            value = mirrored<f, 2, dz>(Axes::z(at_along, at_across + k), C::nz, value);
        }
        return value;
    }

private:
    /// Of the next lane, or beyond a side of x.
    template <int f, int side>
    __device__ __forceinline__ T beyond(const T* row, int j, int mirror, bool outside, int around) const {
        if constexpr (C::edge(f, 0, side) == edge_periodic) return row[outside ? j + around : j];
        const T next = row[j], image = row[mirror];
        return !outside ? next : C::edge(f, 0, side) == edge_odd ? a.field[f].twice[0][side] - image : image;
    }

    /// A value beyond an odd side.
    template <int f, int axis, int d>
    __device__ __forceinline__ T mirrored(int at, int n, T value) const {
        if (d < 0 && C::edge(f, axis, 0) == edge_odd) return at + d < 0 ? a.field[f].twice[axis][0] - value : value;
        if (d > 0 && C::edge(f, axis, 1) == edge_odd) return at + d >= n ? a.field[f].twice[axis][1] - value : value;
        return value;
    }
};

/// As right_hand_sides, of functions that read a star of the target alone.
template <class C, bool Inside>
__device__ __forceinline__ void right_hand_sides_of_star(const MeshArguments<typename C::real>& a, const typename C::Parameters& p, const typename C::real* const (&plane)[5], int x, int at_across, int at_along, std::int64_t mesh,
                                                         bool first, bool last, typename C::real (&d)[C::K][C::R]) {
    using T = typename C::real;
    using Axes = RowsAxes<C>;
    using Vectors = LaneVectors<T, C::R>;
    using Points = typename Vectors::Points;
    constexpr int R = C::R, V = Vectors::points;
    static_assert(C::K == 2 && C::along == 2);
    const Vectors vectors(static_cast<int>(threadIdx.x) % C::lanes);
    const auto beyond = [&](int axis, int side, T value) { return C::edge(C::target, axis, side) == edge_odd ? a.field[C::target].twice[axis][side] - value : value; };
    const auto row = [&](int away, int k) { return plane[away + 2] + RowsLayout<C>::origin(C::target) + k * C::pitch; };
    constexpr int y = C::reach_y ? 1 : 0, z = C::reach_z ? 1 : 0;
    T own[2][R], side[2][2];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
#pragma unroll
        for (int i = 0; i < R; i += V) {
            const Points points = vectors.load(row(0, k) + i);
#pragma unroll
            for (int v = 0; v < V; ++v) own[k][i + v] = points.at[v];
        }
        const T low = row(0, k)[first || C::reach_x == 0 ? 0 : -1], high = row(0, k)[last || C::reach_x == 0 ? R - 1 : R];
        side[k][0] = first ? beyond(0, 0, low) : low, side[k][1] = last ? beyond(0, 1, high) : high;
    }
#pragma unroll
    for (int i = 0; i < R; i += V) {
        Points outer[2], low[2], high[2];
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            outer[k] = vectors.load(row(0, k ? 1 + y : -y) + i), low[k] = vectors.load(row(-z, k) + i), high[k] = vectors.load(row(z, k) + i);
            if constexpr (!Inside)
#pragma unroll
                for (int v = 0; v < V; ++v) {
                    if (k == 0 ? at_across == 0 : at_across + 2 >= C::ny) outer[k].at[v] = beyond(1, k, outer[k].at[v]);
                    if (at_along == 0) low[k].at[v] = beyond(2, 0, low[k].at[v]);
                    if (at_along == C::nz - 1) high[k].at[v] = beyond(2, 1, high[k].at[v]);
                }
        }
#pragma unroll
        for (int v = 0; v < V; ++v)
#pragma unroll
            for (int k = 0; k < 2; ++k) {
                const NearStar<C, V> near{own, side, outer, low, high, k, i + v, k == 1};
                T result[1];
                if constexpr (C::moves_alone) result[0] = T(0x1p-20) * own[k][i + v];
                else C::rhs(near, p, result, std::int64_t{x + i + v}, std::int64_t{at_across + k}, std::int64_t{at_along}, mesh, a.step);
                d[k][i + v] = result[0];
            }
    }
}

template <class C, bool Inside>
__device__ __forceinline__ void right_hand_sides(const MeshArguments<typename C::real>& a, const typename C::Parameters& p, const typename C::real* const (&plane)[5], int x, int at_across, int at_along, std::int64_t mesh,
                                                 bool first, bool last, typename C::real (&d)[C::K][C::R]) {
    using T = typename C::real;
    using L = RowsLayout<C>;
    if constexpr (C::star) {
        right_hand_sides_of_star<C, Inside>(a, p, plane, x, at_across, at_along, mesh, first, last, d);
    } else {
#pragma unroll
        for (int i = 0; i < C::R; ++i)
#pragma unroll
            for (int k = 0; k < C::K; ++k) {
                const NearStaged<C, Inside> near{a, plane, k, i, at_across, at_along, first, last};
                typename C::real result[1];
                if constexpr (C::moves_alone) result[0] = T(0x1p-20) * plane[2][L::origin(C::any_staged) + k * C::pitch + i];
                else if constexpr (C::has_rhs) C::rhs(near, p, result, std::int64_t{x + i}, std::int64_t{RowsAxes<C>::y(at_along, at_across + k)}, std::int64_t{RowsAxes<C>::z(at_along, at_across + k)}, mesh, a.step);
                else result[0] = near.template at<C::target, 0, 0, 0>();
                d[k][i] = result[0];
            }
    }
}

}  // namespace trifold::cuda::streaming
