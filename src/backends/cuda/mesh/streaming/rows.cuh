// SPDX-License-Identifier: BSD-3-Clause
// The right-hand side and the lines along x:   values = (lower, diag, upper)^-1 rhs(fields)
//
// Arrays: fields any strides; values packed. Overwritten: values.
// Who does what: a block goes up through planes with a slab of H rows. Of every field that is read at neighbours it keeps the planes that the
//   stencil reaches in shared memory, each brought once, with the rows beside the slab, while the plane before is
//   worked on. Threads compute columns of right-hand sides, lanes along x, into a tile; then R values of a line each, lanes across
//   lines; a thread per line joins the segments; and lanes along x carry the tile out.
// Words per point: 1 read (and (H + 2 reach) / H of the second-level cache), 1 written.
// Numerics: chip.cuh; safe or refused by the host (line_table.hpp).
#pragma once

#include "backends/cuda/mesh/points.cuh"
#include "backends/cuda/mesh/streaming/chip.cuh"

namespace trifold::cuda::streaming {

/// A place along an axis and what becomes of a value that is read there; sides as trifold/mesh.hpp has them.
struct Mirror {
    int index;
    bool below, above;

    __device__ __forceinline__ Mirror(int i, int d, int n, int low, int high) : below(d < 0 && i + d < 0), above(d > 0 && i + d >= n) {
        index = i + d;
        if (below) index = low == edge_periodic ? index + n : -1 - index;
        if (above) index = high == edge_periodic ? index - n : 2 * n - 1 - index;
    }
};

/// A value beyond an odd side.
template <class C, int f, int axis, int d>
__device__ __forceinline__ typename C::real mirrored(const MeshArguments<typename C::real>& a, const Mirror& at, typename C::real value) {
    if (d < 0 && C::edge(f, axis, 0) == edge_odd) return at.below ? a.field[f].twice[axis][0] - value : value;
    if (d > 0 && C::edge(f, axis, 1) == edge_odd) return at.above ? a.field[f].twice[axis][1] - value : value;
    return value;
}

/// Shared memory of a block, in elements.
template <class C>
struct RowsLayout {
    using T = typename C::real;
    static constexpr int up(int n) { return (n + 3) / 4 * 4; }
    static constexpr int row = up(C::nx), rows = C::H + 2 * C::reach_y, plane = rows * row, depth = 2 * C::reach_z + 2;
    static constexpr int factors = depth * plane * C::staged_count, joins = factors + C::S * segment_pitch<T, C::R>, tile = joins + 4 * C::S, last = up(tile + C::H * C::pitch),
                         first = up(last + C::S * C::H), total = first + (C::S + 1) * C::H;

    /// Of a staged field among them.
    static constexpr int ring(int f) {
        int before = 0;
        for (int g = 0; g < f; ++g) before += static_cast<int>(C::staged >> g & 1);
        return before * depth * plane;
    }
};

template <class C>
__device__ __forceinline__ int mirror_index(int f, int axis, int i, int n) {
    if (i < 0) return C::edge(f, axis, 0) == edge_periodic ? i + n : -1 - i;
    if (i >= n) return C::edge(f, axis, 1) == edge_periodic ? i - n : 2 * n - 1 - i;
    return i;
}

/// Where neighbours lie: those of staged fields in shared memory, by plane and by place along x; others in memory.
template <class C>
struct StagedColumn {
    using T = typename C::real;
    const T* memory;
    int plane[5];                 ///< of the first staged field, row 0 of the slab, dz = -2 … 2
    int along_x[C::fields][5];    ///< place along x, dx = -2 … 2
    const T* own[C::fields];      ///< in memory, row 0 of the slab
};

/// Row h + row of the slab. Middle: no neighbour lies beyond a side of x; Inside: nor of y or z.
template <class C, int row, bool Middle, bool Inside>
struct NearStaged {
    using T = typename C::real;
    using L = RowsLayout<C>;
    const MeshArguments<T>& a;
    const StagedColumn<C>& column;
    int h, x, y, z;

    template <int f, int dx, int dy, int dz>
    __device__ __forceinline__ T at() const {
        if constexpr (!(C::staged >> f & 1)) {
            static_assert(dx == 0 && dy == 0 && dz == 0, "a field that is read at neighbours is staged");
            return column.own[f][(h + row) * C::stride(f, 1)];
        } else {
            const int place = L::ring(f) + (h + row + dy) * L::row;
            T value = column.memory[column.plane[dz + 2] + column.along_x[f][Middle ? 2 : dx + 2] + (Middle ? dx : 0) + place];
            if constexpr (!Middle) value = mirrored<C, f, 0, dx>(a, Mirror(x, dx, C::nx, C::edge(f, 0, 0), C::edge(f, 0, 1)), value);
            if constexpr (!Inside) {
                value = mirrored<C, f, 1, dy>(a, Mirror(y + row, dy, C::ny, C::edge(f, 1, 0), C::edge(f, 1, 1)), value);
                value = mirrored<C, f, 2, dz>(a, Mirror(z, dz, C::nz, C::edge(f, 2, 0), C::edge(f, 2, 1)), value);
            }
            return value;
        }
    }
};

template <class C, int Rows, bool Middle, bool Inside, int row = 0>
__device__ __forceinline__ void staged_rows(const MeshArguments<typename C::real>& a, const typename C::Parameters& p, const StagedColumn<C>& column, int h, int x, int y, int z,
                                            std::int64_t mesh, typename C::real (&result)[Rows][1]) {
    if constexpr (row < Rows) {
        result[row][0] = 0;
        if (Inside || y + row < C::ny) {
            const NearStaged<C, row, Middle, Inside> near{a, column, h, x, y, z};
            if constexpr (C::has_rhs) C::rhs(near, p, result[row], std::int64_t{x}, std::int64_t{y + row}, std::int64_t{z}, mesh, a.step);
            else result[row][0] = near.template at<C::target, 0, 0, 0>();
        }
        staged_rows<C, Rows, Middle, Inside, row + 1>(a, p, column, h, x, y, z, mesh, result);
    }
}

/// C: real, fields, nx, ny, nz, edge(field, axis, side), stride(field, axis), H, R, S, pitch, threads, chunk (planes of a task), staged (bit f: field f), staged_count,
/// vectors (staged rows are copied 16 bytes at a time), has_rhs, target, at_once (rows of right-hand sides), reach_x, reach_y, reach_z, Parameters,
/// rhs(near, …), ends_x, line_x.
template <class C>
__device__ __forceinline__ void rows_pass(const MeshArguments<typename C::real>& a, const typename C::Parameters& p, const typename C::real* table, typename C::real low, typename C::real high) {
    using T = typename C::real;
    using L = RowsLayout<C>;
    constexpr int H = C::H, R = C::R, S = C::S, nx = C::nx, ny = C::ny, nz = C::nz, V = vector_values<T>, reach = C::reach_z;
    constexpr int slabs = (ny + H - 1) / H, chunks = (nz + C::chunk - 1) / C::chunk;
    extern __shared__ int4 shared[];
    T* const memory = reinterpret_cast<T*>(shared);
    const int thread = static_cast<int>(threadIdx.x), line = thread % H, segment = thread / H;
    T *const factors = memory + L::factors, *const joins = memory + L::joins, *const last = memory + L::last + line, *const first = memory + L::first + line;

    for (int i = thread; i < L::factors; i += C::threads) memory[i] = 0;
    for (int i = thread; i < H * C::pitch; i += C::threads) memory[L::tile + i] = 0;
    for (int i = thread; i < S * 4 * R; i += C::threads) factors[i / (4 * R) * segment_pitch<T, R> + i % (4 * R)] = table[i];
    for (int i = thread; i < 4 * S; i += C::threads) joins[i] = table[S * 4 * R + i];
    if (segment == 0) first[S * H] = 0;
    if (!runs(a.state, a.sweep)) return;
    __syncthreads();

    // Slabs side by side are done at about the same time.
    const std::int64_t tasks = std::int64_t{slabs} * chunks * a.extent[3];
    struct Place {
        std::int64_t mesh;
        int y0, from, to;
    };
    const auto place_of = [&](std::int64_t task) {
        Place place;
        place.y0 = static_cast<int>(task % slabs) * H;
        place.from = static_cast<int>(task / slabs % chunks) * C::chunk;
        place.to = place.from + C::chunk < nz ? place.from + C::chunk : nz;
        place.mesh = task / slabs / chunks;
        return place;
    };
    // Plane z (it may lie beyond a side) of a slab with the rows beside it.
    const auto bring = [&](const Place& place, int z, int shift) {
        constexpr int each = C::vectors ? V : 1, per_row = nx / each;
#pragma unroll
        for (int f = 0; f < C::fields; ++f)
            if (C::staged >> f & 1) {
                const T* const from = a.field[f].data + place.mesh * C::stride(f, 3) + mirror_index<C>(f, 2, z, nz) * C::stride(f, 2);
                T* const to = memory + L::ring(f) + (z + shift + L::depth) % L::depth * L::plane;
#pragma unroll 2
                for (int i = thread; i < L::rows * per_row; i += C::threads) {
                    const int row = i / per_row, x = i % per_row * each, y = place.y0 + row - C::reach_y;
                    if (y >= ny + C::reach_y) break;
                    const T* const source = from + mirror_index<C>(f, 1, y, ny) * C::stride(f, 1) + x * C::stride(f, 0);
                    const unsigned target = shared_address(to + row * L::row + x);
                    if constexpr (C::vectors) copy_vector(target, source);
                    else copy_element(target, source);
                }
            }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    std::int64_t task = blockIdx.x;
    Place place = place_of(task);
    int shift = 0;  // plane z lies in place (z + shift) of the ring
    if (task < tasks)
        for (int z = place.from - reach; z <= place.from + reach; ++z) bring(place, z, shift);
#pragma unroll 1
    while (task < tasks) {
        const Place own = place;
        const std::int64_t next_task = task + gridDim.x;
        const Place next = place_of(next_task < tasks ? next_task : task);
#pragma unroll 1
        for (int z = own.from; z < own.to; ++z) {
            // The next plane of this task, or the first one of the next where that is all that it needs.
            if (z + 1 < own.to) bring(own, z + 1 + reach, shift);
            else if (reach == 0 && next_task < tasks) bring(next, next.from, (z + 1 + shift - next.from) & 1);
            else asm volatile("cp.async.commit_group;" ::: "memory");
            asm volatile("cp.async.wait_group 1;" ::: "memory");
            __syncthreads();

#pragma unroll 1
            for (int x = thread; x < nx; x += C::threads) {
                StagedColumn<C> column;
                column.memory = memory;
#pragma unroll
                for (int dz = -2; dz <= 2; ++dz) column.plane[dz + 2] = (z + dz + shift + 2 * L::depth) % L::depth * L::plane + C::reach_y * L::row;
#pragma unroll
                for (int f = 0; f < C::fields; ++f) {
#pragma unroll
                    for (int dx = -2; dx <= 2; ++dx) column.along_x[f][dx + 2] = Mirror(x, dx, nx, C::edge(f, 0, 0), C::edge(f, 0, 1)).index;
                    column.own[f] = a.field[f].data + own.mesh * C::stride(f, 3) + x * C::stride(f, 0) + own.y0 * C::stride(f, 1) + z * C::stride(f, 2);
                }
                constexpr int at_once = H % C::at_once == 0 ? C::at_once : 4;
                const bool inside_z = z >= reach && z + reach < nz, middle = __all_sync(__activemask(), x >= C::reach_x && x + C::reach_x < nx);
                T* const to = memory + L::tile + x;
#pragma unroll 1
                for (int h = 0; h < H; h += at_once) {
                    T result[at_once][1];
                    const int y = own.y0 + h;
                    if (inside_z && y >= C::reach_y && y + at_once + C::reach_y <= ny) {
                        if (middle) staged_rows<C, at_once, true, true>(a, p, column, h, x, y, z, own.mesh, result);
                        else staged_rows<C, at_once, false, true>(a, p, column, h, x, y, z, own.mesh, result);
                    } else {
                        staged_rows<C, at_once, false, false>(a, p, column, h, x, y, z, own.mesh, result);
                    }
#pragma unroll
                    for (int k = 0; k < at_once; ++k) {
                        if (C::ends_x && x == 0) result[k][0] -= low;
                        if (C::ends_x && x == nx - 1) result[k][0] -= high;
                        to[(h + k) * C::pitch] = result[k][0];
                    }
                }
            }
            __syncthreads();

            bool bad = false;
            {
                T d[R];
                T* const tile = memory + L::tile + line * C::pitch + segment * R;
                T z_first = 0, x_last = 0, before = 0;
                if (segment < S) {
#pragma unroll
                    for (int i = 0; i < R; ++i) d[i] = tile[i];
                    z_first = forwards<T, R>(factors + segment * segment_pitch<T, R>, d, S > 1);
                }
                if (S > 1) {
                    if (segment < S) last[segment * H] = d[R - 1], first[segment * H] = z_first;
                    __syncthreads();
                    if (segment == 0) join<T, S>(joins, last, first, H);
                    __syncthreads();
                    if (segment < S) {
                        x_last = last[segment * H];
                        if (segment) before = last[(segment - 1) * H];
                    }
                } else {
                    x_last = d[R - 1] * joins[2];
                }
                if (segment < S) {
                    backwards<T, R>(factors + segment * segment_pitch<T, R>, d, before, x_last);
                    bad = !finite(d[0], x_last);
#pragma unroll
                    for (int i = 0; i < R; ++i) tile[i] = d[i];
                }
            }
            if (__syncthreads_or(bad)) {
                if (segment == 0) first[0] = 0;
                __syncthreads();
                if (bad) first[0] = T(1) / T(0);
                __syncthreads();
                const int y = own.y0 + line;
                if (segment == 0 && !finite(first[0], T(0)) && y < ny) {
                    *reinterpret_cast<volatile unsigned char*>(&a.failed[own.mesh]) = static_cast<unsigned char>(C::line_x + 1);
                    report_line(a.state, a.sweep, MeshState::key(C::line_x, ((own.mesh * nz + z) * ny + y) * nx, false, C::not_finite));
                }
                __syncthreads();
            }

            T* const out = a.values + ((own.mesh * nz + z) * ny + own.y0) * nx;
#pragma unroll 1
            for (int x = thread; x < nx; x += C::threads)
#pragma unroll
                for (int h = 0; h < H; ++h)
                    if (ny % H == 0 || own.y0 + h < ny) out[h * nx + x] = memory[L::tile + h * C::pitch + x];
        }
        task = next_task;
        place = next;
        shift = reach == 0 ? (own.to + shift - next.from) & 1 : 0;
        if (reach > 0 && task < tasks)
            for (int z = place.from - reach; z <= place.from + reach; ++z) bring(place, z, shift);
    }
}

}  // namespace trifold::cuda::streaming
