// SPDX-License-Identifier: BSD-3-Clause
// Sweeps that no other kernels take: each part of one a pass over memory, a thread per point.
//
//   values = rhs(fields)                     by points
//   lower, diag, upper = coefficients        by points, or by the rows of one line where all lines have the same; ends folded
//   values = (lower, diag, upper)^-1 values  by the kernels for batches (tridiagonal/), or ring_lines here
//   target = update(fields, values)          by points
//
// Arrays: fields with any strides; values and matrices [mesh][z][y][x] packed, a shared matrix by rows. Overwritten: values, matrices, the
//   target of meshes without a failed line. Words per point and sweep of a heat equation with constants: 2 + 2 per axis + 3, and 3 + 3 more
//   per axis whose matrices are computed.
// Numerics: whatever kernel solves the lines checks them, and solves with pivots what it must (docs/algorithms/gpu_batch.md). Rings: LU with
//   partial pivoting of the ring pressed flat (reference/tridiagonal/ring_lu.hpp): rows in the order 0, n-1, 1, n-2, … are a band of two
//   diagonals on each side, of which a thread keeps three rows in registers.
#pragma once

#include "backends/cuda/mesh/points.cuh"

namespace trifold::cuda {

template <class T>
__device__ __forceinline__ std::int64_t points_of(const MeshArguments<T>& a) {
    return a.extent[0] * a.extent[1] * a.extent[2] * a.extent[3];
}

__device__ __forceinline__ std::int64_t own_index() { return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ __forceinline__ std::int64_t all_threads() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

template <class T, int Fields, class Function>
__device__ __forceinline__ void rhs_points(const MeshArguments<T>& a, int target, bool has_function, Function function) {
    if (!runs(a.state, a.sweep)) return;
    const std::int64_t points = points_of(a);
    for (std::int64_t k = own_index(); k < points; k += all_threads()) {
        const Point p = point_at(a, k);
        const NearInMemory<T, Fields> near{a, p, T(0)};
        T result[1];
        if (has_function) {
            function(near, a.parameters, result, p.x, p.y, p.z, p.mesh, a.step);
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

template <class T, int Fields, class Function>
__device__ __forceinline__ void matrix_points(const MeshArguments<T>& a, const LineArguments<T>& line, Function function) {
    if (!runs(a.state, a.sweep)) return;
    const std::int64_t count = line.shared ? line.rows : points_of(a);
    for (std::int64_t k = own_index(); k < count; k += all_threads()) {
        Point p{0, 0, 0, 0};
        if (line.shared) (line.axis == 0 ? p.x : line.axis == 1 ? p.y : p.z) = k;
        else p = point_at(a, k);
        T row[3] = {line.constant[0], line.constant[1], line.constant[2]};
        const NearInMemory<T, Fields> near{a, p, T(0)};
        if (line.has_function) function(near, a.parameters, row, p.x, p.y, p.z, p.mesh, a.step);
        const std::int64_t i = line.axis == 0 ? p.x : line.axis == 1 ? p.y : p.z;
        T lost;
        fold_row(line, i, row, lost);
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

/// Rings of three rows or more, a thread per line; scratch: 6 × rows × threads, thread by thread.
template <class T>
__device__ __forceinline__ void ring_lines(const MeshArguments<T>& a, const LineArguments<T>& line, T* scratch, int reason_singular, int reason_not_finite) {
    if (!runs(a.state, a.sweep)) return;
    const std::int64_t n = line.rows, slots = all_threads(), slot = own_index();
    for (std::int64_t k = slot; k < line.lines; k += slots) {
        std::int64_t apart;
        const std::int64_t first = first_of_line(a, line, k, apart);
        const std::int64_t matrix = line.shared ? 0 : first, matrix_apart = line.shared ? 1 : apart;
        const auto row_at = [&](std::int64_t place) { return place % 2 == 0 ? place / 2 : n - 1 - place / 2; };
        const auto place_of = [&](std::int64_t row) { return 2 * row < n ? 2 * row : 2 * (n - 1 - row) + 1; };
        std::int64_t not_finite = -1, singular = -1;
        T w[3][6];  // columns place … place + 4 and the right-hand side, of the row that is next and of the two behind it
        const auto load = [&](std::int64_t place, std::int64_t from, T (&row)[6]) {
            for (int c = 0; c < 6; ++c) row[c] = 0;
            if (place >= n) return;
            const std::int64_t i = row_at(place);
            const T lower = line.lower[matrix + i * matrix_apart], diag = line.diag[matrix + i * matrix_apart], upper = line.upper[matrix + i * matrix_apart];
            row[5] = a.values[first + i * apart];
            const int own = static_cast<int>(place - from), left = static_cast<int>(place_of(i > 0 ? i - 1 : n - 1) - from), right = static_cast<int>(place_of(i < n - 1 ? i + 1 : 0) - from);
            for (int c = 0; c < 5; ++c) row[c] = c == own ? diag : c == left ? lower : c == right ? upper : T(0);
            if (!(lower * T(0) + diag * T(0) + upper * T(0) + row[5] * T(0) == T(0)) && not_finite < 0) not_finite = i;
        };
        T* const u = scratch + slot;
        for (int r = 0; r < 3; ++r) load(r, 0, w[r]);
        for (std::int64_t j = 0; j < n; ++j) {
            // The largest of the three becomes the pivot.
            int best = 0;
            for (int r = 1; r < 3; ++r)
                if (fabs(w[r][0]) > fabs(w[best][0])) best = r;
            for (int c = 0; c < 6; ++c) {
                const T top = w[0][c], chosen = best == 0 ? w[0][c] : best == 1 ? w[1][c] : w[2][c];
                if (best == 1) w[1][c] = top;
                if (best == 2) w[2][c] = top;
                w[0][c] = chosen;
                u[(6 * j + c) * slots] = chosen;
            }
            if (w[0][0] == T(0) && singular < 0) singular = row_at(j);
            T next[3][6];
            for (int r = 1; r < 3; ++r) {
                const T f = w[r][0] / w[0][0];
                for (int c = 1; c < 5; ++c) next[r - 1][c - 1] = w[r][c] - f * w[0][c];
                next[r - 1][4] = 0;
                next[r - 1][5] = w[r][5] - f * w[0][5];
            }
            load(j + 3, j + 1, next[2]);
            for (int r = 0; r < 3; ++r)
                for (int c = 0; c < 6; ++c) w[r][c] = next[r][c];
        }
        if (not_finite < 0 && singular < 0) {
            T x[4] = {};
            for (std::int64_t j = n - 1; j >= 0; --j) {
                T now = u[(6 * j + 5) * slots];
                for (int c = 0; c < 4; ++c) now -= u[(6 * j + c + 1) * slots] * x[c];
                now /= u[6 * j * slots];
                if (!(now * T(0) == T(0)) && not_finite < 0) not_finite = row_at(j);
                u[(6 * j + 5) * slots] = now;
                x[3] = x[2], x[2] = x[1], x[1] = x[0], x[0] = now;
            }
        }
        if (not_finite >= 0 || singular >= 0) {
            line_failed(a, line, first, apart, not_finite >= 0 ? not_finite : singular, not_finite >= 0 ? reason_not_finite : reason_singular);
            continue;
        }
        for (std::int64_t j = 0; j < n; ++j) a.values[first + row_at(j) * apart] = u[(6 * j + 5) * slots];
    }
}

template <class T, int Fields, class Function>
__device__ __forceinline__ void update_points(const MeshArguments<T>& a, int target, bool has_function, Function function) {
    if (!runs(a.state, a.sweep)) return;
    const std::int64_t points = points_of(a);
    const bool look = *reinterpret_cast<const volatile unsigned long long*>(&a.state->failed_at) == a.sweep;
    const FieldView<T>& field = a.field[target];
    for (std::int64_t k = own_index(); k < points; k += all_threads()) {
        const Point p = point_at(a, k);
        if (look && a.failed[p.mesh]) continue;
        T result[1] = {a.values[k]};
        const NearInMemory<T, Fields> near{a, p, result[0]};
        if (has_function) function(near, a.parameters, result, p.x, p.y, p.z, p.mesh, a.step);
        field.data[p.x * field.stride[0] + p.y * field.stride[1] + p.z * field.stride[2] + p.mesh * field.stride[3]] = result[0];
    }
}

}  // namespace trifold::cuda
