// SPDX-License-Identifier: BSD-3-Clause
// A point function's look at fields in the device's memory: trifold/mesh.hpp word by word, any strides and sides.
#pragma once

#include "backends/cuda/mesh/views.hpp"

namespace trifold::cuda {

struct Point {
    std::int64_t x, y, z, mesh;
};

template <class T>
__device__ __forceinline__ Point point_at(const MeshArguments<T>& a, std::int64_t index) {
    Point p;
    if (index >> 32 == 0) {
        auto rest = static_cast<unsigned>(index);
        const auto nx = static_cast<unsigned>(a.extent[0]), ny = static_cast<unsigned>(a.extent[1]), nz = static_cast<unsigned>(a.extent[2]);
        p.x = rest % nx, rest /= nx;
        p.y = rest % ny, rest /= ny;
        p.z = rest % nz, p.mesh = rest / nz;
        return p;
    }
    p.x = index % a.extent[0], index /= a.extent[0];
    p.y = index % a.extent[1], index /= a.extent[1];
    p.z = index % a.extent[2], p.mesh = index / a.extent[2];
    return p;
}

/// A value beyond the sides of an axis: sign × f(index) + offset.
template <class T>
struct MirroredIndex {
    std::int64_t index;
    T sign = 1, offset = 0;

    __device__ __forceinline__ MirroredIndex(const FieldView<T>& field, int axis, std::int64_t n, std::int64_t i) : index(i) {
        while (index < 0 || index >= n) {
            const int side = index < 0 ? 0 : 1;
            const unsigned char edge = field.edge[axis][side];
            if (edge == edge_periodic) {
                index += side == 0 ? n : -n;
                continue;
            }
            if (edge == edge_odd) offset += sign * field.twice[axis][side], sign = -sign;
            index = side == 0 ? -1 - index : 2 * n - 1 - index;
        }
    }
};

/// A point all of whose neighbours that a function reads are inside the mesh.
template <class T, int Fields>
struct NearInside {
    const MeshArguments<T>& a;
    const Point& point;
    T solution;

    template <int f, int dx, int dy, int dz>
    __device__ __forceinline__ T at() const {
        if constexpr (f == Fields) {
            return solution;
        } else {
            const FieldView<T>& field = a.field[f];
            const T* const here = field.data + (point.x * field.stride[0] + point.y * field.stride[1] + point.z * field.stride[2] + point.mesh * field.stride[3]);
            return here[dx * field.stride[0] + dy * field.stride[1] + dz * field.stride[2]];
        }
    }
};

/// `Fields` fields, and the solution of a sweep after them.
template <class T, int Fields>
struct NearInMemory {
    const MeshArguments<T>& a;
    const Point& point;
    T solution;

    template <int f, int dx, int dy, int dz>
    __device__ __forceinline__ T at() const {
        if constexpr (f == Fields) {
            return solution;
        } else {
            const FieldView<T>& field = a.field[f];
            if constexpr (dx == 0 && dy == 0 && dz == 0) {
                return field.data[point.x * field.stride[0] + point.y * field.stride[1] + point.z * field.stride[2] + point.mesh * field.stride[3]];
            } else {
                const MirroredIndex<T> x(field, 0, a.extent[0], point.x + dx), y(field, 1, a.extent[1], point.y + dy), z(field, 2, a.extent[2], point.z + dz);
                const T value = field.data[x.index * field.stride[0] + y.index * field.stride[1] + z.index * field.stride[2] + point.mesh * field.stride[3]];
                return z.sign * (y.sign * (x.sign * value + x.offset) + y.offset) + z.offset;
            }
        }
    }
};

}  // namespace trifold::cuda
