// SPDX-License-Identifier: BSD-3-Clause
// The right-hand side of a sweep as a pass of its own, before line solves whose matrices are kept (kept.cuh).
//
//   values = rhs(fields)
//
// Arrays: fields any strides; values packed. Overwritten: values.
// Who does what: a thread has C::groups times P points behind each other along the last axis (C::P, by what registers hold); P share their neighbours. A warp has 32 points along x, a block
//   eight such rows side by side, so that what they share comes from the first-level cache. Sides of x are a choice without a branch; those of y and z are whole warps'.
// Kept values: what a function makes of fields that never change, at the cost of divisions (resident/invariants.hpp): C::kept values. Where meshes share them a thread makes its own, holds them in registers, and goes
//   from mesh to mesh with them (C::held). Else they are computed before the first step, in arrays of a mesh each; where one is that of the next point along an axis (faces of cells), two share an array, and behind it is
//   what the last points along the axis have. Or they are made anew, by the same two functions (C::held, a mesh at a time).
// Words per point: those of the fields that are read, one per array of kept values, and 1; held from mesh to mesh 2. Heat with conductivity in three dimensions: u, 3 faces, and 1: 5 where 3 would be with 6 divisions. Why not in the pass along x: there 12 to 16 warps wait for up to 14 loads a point, here 32 and more do.
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

    /// Meshes `begin` … `end` in a piece; less than 2^32 tasks.
    __device__ __forceinline__ void run(unsigned piece, std::int64_t begin, std::int64_t end, int thread) const {
        const int x = static_cast<int>(piece % pieces_x) * wide + thread % wide;
        piece /= pieces_x;
        const int y = static_cast<int>(piece % pieces_y) * rows_y + thread / wide * (along == 1 ? deep : 1), z = static_cast<int>(piece / pieces_y) * rows_z;
        if (x >= C::nx || y >= C::ny) return;
        const bool beside = along == 1 ? z >= C::reach_z && z + C::reach_z < C::nz : y >= C::reach_y && y + C::reach_y < C::ny;
#pragma unroll 1
        for (int k = 0; k < deep; k += P) {
            const int own_y = along == 1 ? y + k : y, own_z = along == 1 ? z : z + k, at = along == 1 ? own_y : own_z, rows = along == 1 ? C::ny : C::nz, reach = along == 1 ? C::reach_y : C::reach_z;
            if (beside && at >= reach && at + P - 1 + reach < rows) {
                group<P, true>(x, own_y, own_z, begin, end);
            } else if (at + P <= rows) {
                group<P, false>(x, own_y, own_z, begin, end);
            } else {
#pragma unroll 1
                for (int j = 0; j < P && at + j < rows; ++j) group<1, false>(x, along == 1 ? y + k + j : y, along == 1 ? z : z + k + j, begin, end);
            }
        }
    }

    /// Among the last points along an axis.
    static __device__ __forceinline__ int beyond(int axis, int x, int y, int z) { return axis == 0 ? z * C::ny + y : axis == 1 ? z * C::nx + x : y * C::nx + x; }

private:
    /// `count` points behind each other, of some meshes. Inside: all that they look at lies within y and z.
    template <int count, bool Inside>
    __device__ __forceinline__ void group(int x, int y, int z, std::int64_t begin, std::int64_t end) const {
        using Looks = Near<C, Inside, false>;
        constexpr std::int64_t points = std::int64_t{C::nx} * C::ny * C::nz;
        constexpr int apart = along == 1 ? C::nx : C::nx * C::ny;
        T held[count][C::kept > 0 ? C::kept : 1] = {};
        if constexpr (C::held) {
            TakenKept<C> near[count];
            take(near, Looks{a, x, y, z, begin, T(0)});
#pragma unroll
            for (int k = 0; k < count; ++k) C::keep(near[k], p, held[k], std::int64_t{x}, std::int64_t{along == 1 ? y + k : y}, std::int64_t{along == 1 ? z : z + k}, begin, a.step);
#pragma unroll
            for (int k = 0; k < count; ++k)
#pragma unroll
                for (int v = 0; v < C::kept; ++v) held[k][v] = unforeseen(held[k][v]);  // the same roundings of what is made of it, whether held, kept in memory or just made
        }
        // Where nothing is held there is one mesh and no loop: what places are made of would be kept for its next turn, in registers that loads want.
#pragma unroll 1
        for (std::int64_t number = begin; number < (C::held ? end : begin + 1); ++number) {
            const std::int64_t mesh = C::held && a.backwards ? begin + end - 1 - number : number;
            TakenKept<C> near[count];
            T out[count] = {};
            take(near, Looks{a, x, y, z, mesh, T(0)});
#pragma unroll
            for (int k = 0; k < count; ++k) {
                if constexpr (C::held) {
#pragma unroll
                    for (int v = 0; v < C::kept; ++v) near[k].held[v] = held[k][v];
                } else {
                    take_kept<Inside>(near[k], x, along == 1 ? y + k : y, along == 1 ? z : z + k, mesh);
                }
            }
#pragma unroll
            for (int k = 0; k < count; ++k) C::rhs(near[k], p, &out[k], std::int64_t{x}, std::int64_t{along == 1 ? y + k : y}, std::int64_t{along == 1 ? z : z + k}, mesh, a.step);
#pragma unroll
            for (int k = 0; k < count; ++k) a.values[mesh * points + ((z * C::ny + y) * C::nx + x + k * apart)] = out[k];
        }
    }

    template <int k = 0, int count, class Looks>
    static __device__ __forceinline__ void take(TakenKept<C> (&near)[count], const Looks& looks) {
        if constexpr (k < count) {
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

/// A task is a piece of `each` meshes.
template <class C>
__device__ __forceinline__ void right_hand_sides(const MeshArguments<typename C::real>& a, const typename C::Parameters& p, const typename C::real* kept, unsigned each) {
    using Own = RightHandSides<C>;
    follow_previous();
    if (!runs(a.state, a.sweep)) return;
    const auto meshes = static_cast<unsigned>(a.extent[3]), tasks = (C::held ? (meshes + each - 1) / each : meshes) * Own::pieces;
    for (unsigned task = blockIdx.x; task < tasks; task += gridDim.x) {
        const unsigned number = a.backwards ? tasks - 1 - task : task, begin = number / Own::pieces * (C::held ? each : 1);
        Own{a, p, kept}.run(number % Own::pieces, begin, C::held ? begin + each < meshes ? begin + each : meshes : begin + 1, static_cast<int>(threadIdx.x));
    }
}

#endif

}  // namespace trifold::cuda::fused
