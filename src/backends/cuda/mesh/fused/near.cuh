// SPDX-License-Identifier: BSD-3-Clause
// A point function's look at fields in memory whose strides, sides and extents are known to the compiler: neighbours inside the mesh are loads at constant
// offsets, those beyond a side a choice without a branch.
#pragma once

#include "backends/cuda/mesh/views.hpp"

namespace trifold::cuda::fused {

/// C: real, fields, nx, ny, nz, stride(field, axis), edge(field, axis, side). Inside: no neighbour that is read lies beyond a side of y or z, nor, if InsideX, of x.
template <class C, bool Inside, bool InsideX = Inside>
struct Near {
    using T = typename C::real;
    const MeshArguments<T>& a;
    int x, y, z;
    std::int64_t mesh;
    T solution;

    template <int f, int dx, int dy, int dz>
    __device__ __forceinline__ T at() const {
        if constexpr (f == C::fields) {
            return solution;
        } else {
            const T* const field = a.field[f].data + mesh * C::stride(f, 3);
            if constexpr (Inside && (InsideX || dx == 0)) {
                return (field + (x * C::stride(f, 0) + y * C::stride(f, 1) + z * C::stride(f, 2)))[dx * C::stride(f, 0) + dy * C::stride(f, 1) + dz * C::stride(f, 2)];
            } else if constexpr (Inside) {
                return mirrored<f, 0, dx>(x, C::nx, (field + (place<f, 0, dx>(x, C::nx) * C::stride(f, 0) + y * C::stride(f, 1) + z * C::stride(f, 2)))[dy * C::stride(f, 1) + dz * C::stride(f, 2)]);
            } else {
                T value = field[place<f, 0, dx>(x, C::nx) * C::stride(f, 0) + place<f, 1, dy>(y, C::ny) * C::stride(f, 1) + place<f, 2, dz>(z, C::nz) * C::stride(f, 2)];
                value = mirrored<f, 0, dx>(x, C::nx, value);
                value = mirrored<f, 1, dy>(y, C::ny, value);
                return mirrored<f, 2, dz>(z, C::nz, value);
            }
        }
    }

    template <int f, int axis, int d>
    static __device__ __forceinline__ int place(int at, int n) {
        const int i = at + d;
        if (d < 0) return i >= 0 ? i : C::edge(f, axis, 0) == edge_periodic ? i + n : -1 - i;
        if (d > 0) return i < n ? i : C::edge(f, axis, 1) == edge_periodic ? i - n : 2 * n - 1 - i;
        return i;
    }

private:
    template <int f, int axis, int d>
    __device__ __forceinline__ T mirrored(int at, int n, T value) const {
        if (d < 0 && C::edge(f, axis, 0) == edge_odd) return at + d < 0 ? a.field[f].twice[axis][0] - value : value;
        if (d > 0 && C::edge(f, axis, 1) == edge_odd) return at + d >= n ? a.field[f].twice[axis][1] - value : value;
        return value;
    }
};

/// Looks around the point that is k further along y or z.
template <class Near, int axis, int k>
struct Further {
    const Near& near;

    template <int f, int dx, int dy, int dz>
    __device__ __forceinline__ auto at() const {
        return near.template at<f, dx, dy + (axis == 1 ? k : 0), dz + (axis == 2 ? k : 0)>();
    }
};

/// What a function reads around a point, fetched as a whole before it computes: a division may branch, and loads behind it would wait one after the other.
/// Reads: count, at(k, 0 … 3) = field, dx, dy, dz.
template <class C, class Reads>
struct Taken {
    using T = typename C::real;
    T value[Reads::count > 0 ? Reads::count : 1], solution;

    template <int k = 0, class Near>
    __device__ __forceinline__ void take(const Near& near) {
        if constexpr (k < Reads::count) {
            value[k] = near.template at<Reads::at(k, 0), Reads::at(k, 1), Reads::at(k, 2), Reads::at(k, 3)>();
            take<k + 1>(near);
        }
    }

    template <int f, int dx, int dy, int dz>
    __device__ __forceinline__ T at() const {
        if constexpr (f == C::fields) {
            return solution;
        } else {
            constexpr int k = find(f, dx, dy, dz);
            return value[k];
        }
    }

private:
    static constexpr __device__ int find(int f, int dx, int dy, int dz) {
        int k = 0;
        while (Reads::at(k, 0) != f || Reads::at(k, 1) != dx || Reads::at(k, 2) != dy || Reads::at(k, 3) != dz) ++k;
        return k;
    }
};

/// Points that are looked around at the same time, by what registers hold.
template <class T, class Reads>
constexpr int together(int most) {
    const int fit = 32 * 4 / static_cast<int>(sizeof(T)) / (Reads::count > 0 ? Reads::count : 1);
    return fit < 2 ? (most < 2 ? most : 2) : fit < most ? fit : most;
}

}  // namespace trifold::cuda::fused
