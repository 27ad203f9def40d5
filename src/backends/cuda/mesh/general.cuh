// SPDX-License-Identifier: BSD-3-Clause
// Sweeps that no other kernels take: each part of one a pass over memory, a thread per point.
//
//   values = rhs(fields)                     by points
//   lower, diag, upper = coefficients        by points, or by the rows of one line where all lines have the same; ends folded
//   values = (lower, diag, upper)^-1 values  by the kernels for batches (tridiagonal/); rings see rings.cuh
//   target = update(fields, values)          by points
//
// Arrays: fields with any strides; values and matrices [mesh][z][y][x] packed, a shared matrix by rows. Overwritten: values, matrices, the
//   target of meshes without a failed line. Words per point and sweep of a heat equation with constants: 2 + 2 per axis + 3, and 3 + 3 more
//   per axis whose matrices are computed.
// Instructions: places are divided by extents with multiplications, and where no neighbour lies beyond a side, which is nearly everywhere, functions read
//   at constant offsets.
// Numerics: whatever kernel solves the lines checks them, and solves with pivots what it must (docs/algorithms/gpu_batches.md).
#pragma once

#include "backends/cuda/mesh/points.cuh"

namespace trifold::cuda {

template <class T>
__device__ __forceinline__ std::int64_t points_of(const MeshArguments<T>& a) {
    return a.extent[0] * a.extent[1] * a.extent[2] * a.extent[3];
}

__device__ __forceinline__ std::int64_t own_index() { return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ __forceinline__ std::int64_t all_threads() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

template <class T>
__device__ __forceinline__ Point point_at(const MeshArguments<T>& a, const Extents& extents, std::int64_t index) {
    if (index >> 32 != 0) return point_at(a, index);
    auto x = static_cast<unsigned>(index);
    unsigned y = extents.along[0].split(x), z = extents.along[1].split(y);
    const unsigned mesh = extents.along[2].split(z);
    return {x, y, z, mesh};
}

/// How far from a point a function reads.
template <int x, int y, int z>
struct Reach {
    template <class T>
    static __device__ __forceinline__ bool inside(const MeshArguments<T>& a, const Point& p) {
        return p.x >= x && p.x + x < a.extent[0] && p.y >= y && p.y + y < a.extent[1] && p.z >= z && p.z + z < a.extent[2];
    }
};

/// A function at a point.
template <class Around, int Fields, class T, class Function>
__device__ __forceinline__ void evaluate(const MeshArguments<T>& a, const Point& p, T solution, T* result, Function function) {
    if (Around::inside(a, p)) function(NearInside<T, Fields>{a, p, solution}, a.parameters, result, p.x, p.y, p.z, p.mesh, a.step);
    else function(NearInMemory<T, Fields>{a, p, solution}, a.parameters, result, p.x, p.y, p.z, p.mesh, a.step);
}

template <class T, int Fields, class Around, class Function>
__device__ __forceinline__ void rhs_points(const MeshArguments<T>& a, const Extents& extents, int target, bool has_function, Function function) {
    if (!runs(a.state, a.sweep)) return;
    const std::int64_t points = points_of(a);
    for (std::int64_t k = own_index(); k < points; k += all_threads()) {
        const Point p = point_at(a, extents, k);
        T result[1];
        if (has_function) {
            evaluate<Around, Fields>(a, p, T(0), result, function);
        } else {
            const FieldView<T>& field = a.field[target];
            result[0] = field.data[p.x * field.stride[0] + p.y * field.stride[1] + p.z * field.stride[2] + p.mesh * field.stride[3]];
        }
        a.values[k] = result[0];
    }
    for (std::int64_t k = own_index(); k < a.extent[3]; k += all_threads()) a.failed[k] = 0;
}

/// problems/mesh/line_ends.hpp, row by row.
template <class T>
__device__ __forceinline__ void fold_row(const LineArguments<T>& line, std::int64_t i, T (&row)[3], T& lost) {
    const std::int64_t n = line.rows;
    lost = 0;
    if (line.edge[0] == edge_periodic) {
        if (n == 1) row[1] += row[0] + row[2];
        if (n == 2) (i == 0 ? row[2] : row[0]) += i == 0 ? row[0] : row[2];
        return;
    }
    for (int side = 0; side < 2; ++side) {
        if (i != (side == 0 ? 0 : n - 1)) continue;
        const T beyond = row[2 * side];
        row[1] += line.edge[side] == edge_even ? beyond : -beyond;
        if (line.edge[side] == edge_odd) lost += line.twice[side] * beyond;
    }
}

template <class T, int Fields, class Around, class Function>
__device__ __forceinline__ void matrix_points(const MeshArguments<T>& a, const Extents& extents, const LineArguments<T>& line, Function function) {
    if (!runs(a.state, a.sweep)) return;
    const std::int64_t count = line.shared ? line.rows : points_of(a);
    for (std::int64_t k = own_index(); k < count; k += all_threads()) {
        Point p{0, 0, 0, 0};
        if (line.shared) (line.axis == 0 ? p.x : line.axis == 1 ? p.y : p.z) = k;
        else p = point_at(a, extents, k);
        T row[3] = {line.constant[0], line.constant[1], line.constant[2]};
        if (line.has_function) evaluate<Around, Fields>(a, p, T(0), row, function);
        const std::int64_t i = line.axis == 0 ? p.x : line.axis == 1 ? p.y : p.z;
        T lost;
        fold_row(line, i, row, lost);
        if (line.opens && i == 0) row[0] = 0, row[1] = line.opened[0];
        if (line.opens && i == line.rows - 1) row[1] = line.opened[1], row[2] = 0;
        line.lower[k] = row[0], line.diag[k] = row[1], line.upper[k] = row[2];
        if (!line.shared) {
            if (lost != T(0)) a.values[k] -= lost;
        } else {
            // In a line of one row both ends are the same right-hand side.
            if (i == 0) line.ends[0] = lost;
            if (i == line.rows - 1) line.ends[1] = line.rows > 1 ? lost : T(0);
        }
    }
}

/// Point of row 0 of a line, lines being counted as points are, without their axis.
template <class T>
__device__ __forceinline__ std::int64_t first_of_line(const MeshArguments<T>& a, const LineArguments<T>& line, std::int64_t number, std::int64_t& apart) {
    const std::int64_t nx = a.extent[0], ny = a.extent[1], nz = a.extent[2];
    apart = line.axis == 0 ? 1 : line.axis == 1 ? nx : nx * ny;
    return number / apart * (apart * (line.axis == 0 ? nx : line.axis == 1 ? ny : nz)) + number % apart;
}

/// A shared matrix: its ends' part of every right-hand side.
template <class T>
__device__ __forceinline__ void subtract_ends(const MeshArguments<T>& a, const LineArguments<T>& line) {
    if (!runs(a.state, a.sweep)) return;
    const T low = line.ends[0], high = line.ends[1];
    for (std::int64_t k = own_index(); k < line.lines; k += all_threads()) {
        std::int64_t apart;
        const std::int64_t first = first_of_line(a, line, k, apart);
        a.values[first] -= low;
        a.values[first + (line.rows - 1) * apart] -= high;
    }
}

/// A line has failed: counted, unless its mesh has failed in a line solve before. reason: minus that of trifold::Reason.
template <class T>
__device__ __forceinline__ void line_failed(const MeshArguments<T>& a, const LineArguments<T>& line, std::int64_t first, std::int64_t apart, std::int64_t row, int reason) {
    const std::int64_t mesh = first / (a.extent[0] * a.extent[1] * a.extent[2]);
    const unsigned char before = a.failed[mesh], now = static_cast<unsigned char>(line.number + 1);
    if (before != 0 && before != now) return;
    a.failed[mesh] = now;
    report_line(a.state, a.sweep, MeshState::key(line.number, first + (row > 0 ? row : 0) * apart, row >= 0, reason));
}

template <class T>
__device__ __forceinline__ void judge_lines(const MeshArguments<T>& a, const LineArguments<T>& line, const LinesFound& found) {
    if (!runs(a.state, a.sweep)) return;
    if (own_index() == 0 && *found.rescued) atomicAdd(&a.state->rescued, *found.rescued);
    if (*found.failures == 0) return;
    const unsigned long long width = static_cast<unsigned long long>(line.rows) + 1, first_place = *found.first / 8;
    for (std::int64_t k = own_index(); k < line.lines; k += all_threads()) {
        if (found.status[k] >= 0) continue;
        std::int64_t apart;
        const std::int64_t first = first_of_line(a, line, k, apart);
        const bool known = static_cast<unsigned long long>(k) == first_place / width;
        line_failed(a, line, first, apart, known ? static_cast<std::int64_t>(first_place % width) - 1 : -1, -found.status[k]);
    }
}

template <class T, int Fields, class Around, class Function>
__device__ __forceinline__ void update_points(const MeshArguments<T>& a, const Extents& extents, int target, bool has_function, Function function) {
    if (!runs(a.state, a.sweep)) return;
    const std::int64_t points = points_of(a);
    const bool look = *reinterpret_cast<const volatile unsigned long long*>(&a.state->failed_at) == a.sweep;
    const FieldView<T>& field = a.field[target];
    for (std::int64_t k = own_index(); k < points; k += all_threads()) {
        const Point p = point_at(a, extents, k);
        if (look && a.failed[p.mesh]) continue;
        T result[1] = {a.values[k]};
        if (has_function) evaluate<Around, Fields>(a, p, result[0], result, function);
        field.data[p.x * field.stride[0] + p.y * field.stride[1] + p.z * field.stride[2] + p.mesh * field.stride[3]] = result[0];
    }
}

}  // namespace trifold::cuda
