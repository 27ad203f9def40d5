// SPDX-License-Identifier: BSD-3-Clause
// The right-hand side of a sweep as a pass of its own, before line solves whose matrices are kept (kept.cuh).
//
//   values = rhs(fields)
//
// Arrays: fields any strides; values packed. Overwritten: values.
// Who does what: a thread has C::groups times P points behind each other along the last axis (C::P, by what registers hold); P share their neighbours. A warp has 32 points along x, a block
//   eight such rows side by side, so that what they share comes from the first-level cache. Sides of x are a choice without a branch; those of y and z are whole warps'.
// Kept values: what a function makes of fields that never change, at the cost of divisions, is computed before the first step (resident/invariants.hpp): C::kept values, in arrays of
//   a mesh each; where one is that of the next point along an axis (faces of cells), two share an array, and behind it is what the last points along the axis have.
// Words per point: those of the fields that are read, one per array of kept values, and 1. Heat with conductivity in three dimensions: u, 3 faces, and 1: 5 where 3 would be with 6 divisions. Why not in the pass along x: there 12 to 16 warps wait for up to 14 loads a point, here 32 and more do.
#pragma once

#include "backends/cuda/mesh/fused/near.cuh"

namespace trifold::cuda::fused {

/// What a function reads and what is kept for it.
template <class C>
struct TakenKept : Taken<C, typename C::rhs_reads> {
    typename C::real held[C::kept > 0 ? C::kept : 1];

    template <int k>
    __device__ __forceinline__ typename C::real kept() const {
        return held[k];
    }
};

template <class C>
struct RightHandSides {
    using T = typename C::real;
    static constexpr int along = C::nz > 1 ? 2 : 1, P = C::P;
    static constexpr int wide = 32, high = 8, threads = wide * high, deep = P * C::groups, rows_y = along == 1 ? high * deep : high, rows_z = along == 1 ? 1 : deep;
    static constexpr int pieces_x = (C::nx + wide - 1) / wide, pieces_y = (C::ny + rows_y - 1) / rows_y, pieces_z = (C::nz + rows_z - 1) / rows_z;
    static constexpr unsigned pieces = pieces_x * pieces_y * pieces_z;

    const MeshArguments<T>& a;
    const typename C::Parameters& p;
    const T* kept;

    /// Less than 2^32 tasks.
    __device__ __forceinline__ void run(unsigned task, int thread) const {
        const std::int64_t mesh = task / pieces;
        unsigned piece = task % pieces;
        const int x = static_cast<int>(piece % pieces_x) * wide + thread % wide;
        piece /= pieces_x;
        const int y = static_cast<int>(piece % pieces_y) * rows_y + thread / wide * (along == 1 ? deep : 1), z = static_cast<int>(piece / pieces_y) * rows_z;
        if (x >= C::nx || y >= C::ny) return;
        T* const values = a.values + mesh * (std::int64_t{C::nx} * C::ny * C::nz);
        const bool beside = along == 1 ? z >= C::reach_z && z + C::reach_z < C::nz : y >= C::reach_y && y + C::reach_y < C::ny;
#pragma unroll 1
        for (int k = 0; k < deep; k += P) group(x, along == 1 ? y + k : y, along == 1 ? z : z + k, mesh, values, beside);
    }

    /// Among the last points along an axis.
    static __device__ __forceinline__ int beyond(int axis, int x, int y, int z) { return axis == 0 ? z * C::ny + y : axis == 1 ? z * C::nx + x : y * C::nx + x; }

private:
    __device__ __forceinline__ void group(int x, int y, int z, std::int64_t mesh, T* values, bool beside) const {
        const int at = along == 1 ? y : z, rows = along == 1 ? C::ny : C::nz, reach = along == 1 ? C::reach_y : C::reach_z;
        if (beside && at >= reach && at + P - 1 + reach < rows) {
            TakenKept<C> near[P];
            T out[P];
            take(near, Near<C, true, false>{a, x, y, z, mesh, T(0)});
#pragma unroll
            for (int k = 0; k < P; ++k) take_kept<true>(near[k], x, along == 1 ? y + k : y, along == 1 ? z : z + k, mesh);
#pragma unroll
            for (int k = 0; k < P; ++k) one(near[k], &out[k], x, along == 1 ? y + k : y, along == 1 ? z : z + k, mesh);
#pragma unroll
            for (int k = 0; k < P; ++k) values[(z * C::ny + y) * C::nx + x + k * (along == 1 ? C::nx : C::nx * C::ny)] = out[k];
        } else {
#pragma unroll 1
            for (int k = 0; k < P && at + k < rows; ++k) {
                const int own_y = along == 1 ? y + k : y, own_z = along == 1 ? z : z + k;
                TakenKept<C> near;
                near.take(Near<C, false>{a, x, own_y, own_z, mesh, T(0)});
                take_kept<false>(near, x, own_y, own_z, mesh);
                T out;
                one(near, &out, x, own_y, own_z, mesh);
                values[(own_z * C::ny + own_y) * C::nx + x] = out;
            }
        }
    }

    template <int k = 0, class Looks>
    static __device__ __forceinline__ void take(TakenKept<C> (&near)[P], const Looks& looks) {
        if constexpr (k < P) {
            near[k].take(Further<Looks, along, k>{looks});
            take<k + 1>(near, looks);
        }
    }

    /// Inside: the next point along y or z is there.
    template <bool Inside, int value = 0>
    __device__ __forceinline__ void take_kept(TakenKept<C>& near, int x, int y, int z, std::int64_t mesh) const {
        if constexpr (value < C::kept) {
            constexpr int axis = static_cast<int>(C::place(value, 1)), apart = axis < 0 ? 0 : axis == 0 ? 1 : axis == 1 ? C::nx : C::nx * C::ny;
            const T* const own = kept + mesh * C::kept_words;
            const T* from = own + C::place(value, 0) + ((z * C::ny + y) * C::nx + x) + apart;
            if (axis == 0 || (axis > 0 && !Inside)) {
                if ((axis == 0 ? x + 1 == C::nx : axis == 1 ? y + 1 == C::ny : z + 1 == C::nz)) from = own + C::place(value, 2) + beyond(axis, x, y, z);
            }
            near.held[value] = *from;
            take_kept<Inside, value + 1>(near, x, y, z, mesh);
        }
    }

    __device__ __forceinline__ void one(const TakenKept<C>& near, T* out, int x, int y, int z, std::int64_t mesh) const {
        *out = 0;
        C::rhs(near, p, out, std::int64_t{x}, std::int64_t{y}, std::int64_t{z}, mesh, a.step);
    }
};

/// Before the first sweep: point `at` of a mesh.
template <class C>
__device__ __forceinline__ void keep_values_of(const MeshArguments<typename C::real>& a, const typename C::Parameters& p, typename C::real* kept, std::int64_t mesh, int at) {
    using T = typename C::real;
    constexpr int count = C::kept > 0 ? C::kept : 1;
    const int x = at % C::nx, y = at / C::nx % C::ny, z = at / (C::nx * C::ny);
    Taken<C, typename C::rhs_reads> near;
    near.take(Near<C, false>{a, x, y, z, mesh, T(0)});
    T out[count] = {};
    C::keep(near, p, out, std::int64_t{x}, std::int64_t{y}, std::int64_t{z}, mesh, a.step);
    T* const own = kept + mesh * C::kept_words;
#pragma unroll
    for (int value = 0; value < count; ++value) {
        const int axis = static_cast<int>(C::place(value, 1));
        if (axis < 0) own[C::place(value, 0) + at] = out[value];
        else if (axis == 0 ? x + 1 == C::nx : axis == 1 ? y + 1 == C::ny : z + 1 == C::nz) own[C::place(value, 2) + RightHandSides<C>::beyond(axis, x, y, z)] = out[value];
    }
}

#ifdef __CUDACC__

template <class C>
__device__ __forceinline__ void keep_values(const MeshArguments<typename C::real>& a, const typename C::Parameters& p, typename C::real* kept, std::int64_t meshes) {
    constexpr std::int64_t points = std::int64_t{C::nx} * C::ny * C::nz;
    for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; at < points * meshes; at += static_cast<std::int64_t>(gridDim.x) * blockDim.x) keep_values_of<C>(a, p, kept, at / points, static_cast<int>(at % points));
}

template <class C>
__device__ __forceinline__ void right_hand_sides(const MeshArguments<typename C::real>& a, const typename C::Parameters& p, const typename C::real* kept) {
    using Own = RightHandSides<C>;
    follow_previous();
    if (!runs(a.state, a.sweep)) return;
    const auto tasks = static_cast<unsigned>(a.extent[3]) * Own::pieces;
    for (unsigned task = blockIdx.x; task < tasks; task += gridDim.x) Own{a, p, kept}.run(a.backwards ? tasks - 1 - task : task, static_cast<int>(threadIdx.x));
}

#endif

}  // namespace trifold::cuda::fused
