// SPDX-License-Identifier: BSD-3-Clause
// The right-hand side of a sweep as a pass of its own, before line solves whose matrices are kept (kept.cuh).
//
//   values = rhs(fields)
//
// Arrays: fields any strides; values packed. Overwritten: values.
// Who does what: a thread has C::groups times P points behind each other along the last axis (C::P, by what registers hold); P share their neighbours. A warp has 32 points along x, a block
//   eight such rows side by side, so that what they share comes from the first-level cache. Sides of x are a choice without a branch; those of y and z are whole warps'.
// Words per point: those of the fields that are read, and 1. Why not in the pass along x: there 12 to 16 warps wait for up to 14 loads a point, here 32 and more do.
#pragma once

#include "backends/cuda/mesh/fused/near.cuh"

namespace trifold::cuda::fused {

template <class C>
struct RightHandSides {
    using T = typename C::real;
    static constexpr int along = C::nz > 1 ? 2 : 1, P = C::P;
    static constexpr int wide = 32, high = 8, threads = wide * high, deep = P * C::groups, rows_y = along == 1 ? high * deep : high, rows_z = along == 1 ? 1 : deep;
    static constexpr int pieces_x = (C::nx + wide - 1) / wide, pieces_y = (C::ny + rows_y - 1) / rows_y, pieces_z = (C::nz + rows_z - 1) / rows_z;
    static constexpr unsigned pieces = pieces_x * pieces_y * pieces_z;

    const MeshArguments<T>& a;
    const typename C::Parameters& p;

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

private:
    __device__ __forceinline__ void group(int x, int y, int z, std::int64_t mesh, T* values, bool beside) const {
        const int at = along == 1 ? y : z, rows = along == 1 ? C::ny : C::nz, reach = along == 1 ? C::reach_y : C::reach_z;
        if (beside && at >= reach && at + P - 1 + reach < rows) {
            Taken<C, typename C::rhs_reads> near[P];
            T out[P];
            take(near, Near<C, true, false>{a, x, y, z, mesh, T(0)});
#pragma unroll
            for (int k = 0; k < P; ++k) one(near[k], &out[k], x, along == 1 ? y + k : y, along == 1 ? z : z + k, mesh);
#pragma unroll
            for (int k = 0; k < P; ++k) values[(z * C::ny + y) * C::nx + x + k * (along == 1 ? C::nx : C::nx * C::ny)] = out[k];
        } else {
#pragma unroll 1
            for (int k = 0; k < P && at + k < rows; ++k) {
                const int own_y = along == 1 ? y + k : y, own_z = along == 1 ? z : z + k;
                Taken<C, typename C::rhs_reads> near;
                near.take(Near<C, false>{a, x, own_y, own_z, mesh, T(0)});
                T out;
                one(near, &out, x, own_y, own_z, mesh);
                values[(own_z * C::ny + own_y) * C::nx + x] = out;
            }
        }
    }

    template <int k = 0, class Looks>
    static __device__ __forceinline__ void take(Taken<C, typename C::rhs_reads> (&near)[P], const Looks& looks) {
        if constexpr (k < P) {
            near[k].take(Further<Looks, along, k>{looks});
            take<k + 1>(near, looks);
        }
    }

    __device__ __forceinline__ void one(const Taken<C, typename C::rhs_reads>& near, T* out, int x, int y, int z, std::int64_t mesh) const {
        *out = 0;
        C::rhs(near, p, out, std::int64_t{x}, std::int64_t{y}, std::int64_t{z}, mesh, a.step);
    }
};

#ifdef __CUDACC__

template <class C>
__device__ __forceinline__ void right_hand_sides(const MeshArguments<typename C::real>& a, const typename C::Parameters& p) {
    using Own = RightHandSides<C>;
    follow_previous();
    if (!runs(a.state, a.sweep)) return;
    const auto tasks = static_cast<unsigned>(a.extent[3]) * Own::pieces;
    for (unsigned task = blockIdx.x; task < tasks; task += gridDim.x) Own{a, p}.run(a.backwards ? tasks - 1 - task : task, static_cast<int>(threadIdx.x));
}

#endif

}  // namespace trifold::cuda::fused
