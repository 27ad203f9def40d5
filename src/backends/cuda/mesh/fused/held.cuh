// SPDX-License-Identifier: BSD-3-Clause
// The right-hand side of a sweep and its lines along x in one pass of blocks that go from mesh to mesh: what meshes share is made once and held.
//
//   values = (lower, diag, upper)^-1 rhs(fields),   lower, diag, upper = coefficients(fields) or constants
//
// Arrays: fields any strides, in pieces of 16 bytes where these allow; values packed. Overwritten: values.
// Who does what: L lanes have a line, R points each (held_segment.cuh), a warp 32 / L lines, a block C::beside warps side by side along y and others along z. Rows of C::tiled fields, and those beside the block's, come to shared memory for C::stages - 1 meshes
//   ahead. Values that a right-hand side keeps (right_hand_side.cuh) and all that is left of the matrix and of its reduction are in registers: a mesh after the first costs no division. Lines leave through shared memory, in the order of
//   memory.
// Words per point: one of each tiled field, and 1 (heat: 2 where a right-hand side and kept matrices take 4).
// A mesh alone, or one with a matrix of its own, is the same with one turn, and has the same bits. Numerics: reduced.cuh.
#pragma once

#include "backends/cuda/mesh/fused/held_segment.cuh"
#include "backends/cuda/mesh/fused/kept.cuh"
#include "backends/cuda/mesh/fused/right_hand_side.cuh"

#ifdef __CUDACC__

namespace trifold::cuda {

/// What this thread has asked for (kept.cuh) since it last said so; that all but the last `left` of these are there.
__device__ __forceinline__ void bring_as_one() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int left>
__device__ __forceinline__ void brought_but() {
    asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
}

/// An address in shared memory; a copy to there, if it is wanted, without a branch.
using SharedPlace = unsigned;
__device__ __forceinline__ SharedPlace shared_place(const void* at) {
    auto place = static_cast<unsigned>(__cvta_generic_to_shared(at));
    asm volatile("" : "+r"(place));
    return place;
}
template <int bytes>
__device__ __forceinline__ void bring_if(bool wanted, SharedPlace to, const void* from) {
    if constexpr (bytes == 16) asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %0, 0;\n\t@p cp.async.cg.shared.global [%1], [%2], 16;\n\t}" ::"r"(static_cast<unsigned>(wanted)), "r"(to), "l"(from) : "memory");
    else asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %0, 0;\n\t@p cp.async.ca.shared.global [%1], [%2], %3;\n\t}" ::"r"(static_cast<unsigned>(wanted)), "r"(to), "l"(from), "n"(bytes) : "memory");
}
template <class T>
__device__ __forceinline__ const T* unforeseen_place(const T* at) {
    asm volatile("" : "+l"(at));
    return at;
}

}  // namespace trifold::cuda

#endif

namespace trifold::cuda::fused {

/// C: as Rows' without a window, and beside (warps of a block side by side along y, others along z), stages, tiled (bit f: rows of field f come to shared memory), rhs_reads, coefficients_reads.
template <class C>
struct HeldRows {
    using T = typename C::real;
    static constexpr int R = C::R, L = C::n / R, threads = 32 * C::warps, kept = C::kept > 0 ? C::kept : 1;
    static constexpr int lines = 32 / L, rows_y = C::beside * lines, rows_z = C::warps / C::beside, pieces_y = (C::ny + rows_y - 1) / rows_y, pieces_z = (C::nz + rows_z - 1) / rows_z;
    static constexpr unsigned pieces = pieces_y * pieces_z;
    static constexpr int padding = R % 2 == 0 ? 1 : 0, places = L * R + L * padding;  ///< of a line in shared memory
    /// Rows of a mesh's fields, with those beside a block's, for some meshes ahead.
    static constexpr int stages = C::stages, tile_y = rows_y + 2 * C::reach_y, tile_z = rows_z + 2 * C::reach_z, tile = tile_y * tile_z * C::n;
    static constexpr __device__ bool tiled(int f) { return C::tiled >> f & 1; }
    static constexpr __device__ int tiles_before(int f) {
        int count = 0;
        for (int k = 0; k < f; ++k) count += tiled(k);
        return count;
    }
    static constexpr int stage = tiles_before(C::fields) * tile, in_memory = stages * stage + C::warps * lines * places;
    static_assert(C::n == L * R && 32 % L == 0 && R >= 2 && C::warps % C::beside == 0);

    const MeshArguments<T>& a;
    const typename C::Parameters& p;
    const PassArguments<T>& pass;

    __device__ __forceinline__ void run(unsigned piece, std::int64_t begin, std::int64_t end, int thread, T* memory) const {
        const int warp = thread / 32, line = thread % 32 / L, y_block = static_cast<int>(piece % pieces_y) * rows_y, z_block = static_cast<int>(piece / pieces_y) * rows_z;
        const int y = y_block + warp % C::beside * lines, z = z_block + warp / C::beside;
        const bool inside = y_block >= C::reach_y && y_block + rows_y - 1 + C::reach_y < C::ny && z_block >= C::reach_z && z_block + rows_z - 1 + C::reach_z < C::nz;
        T* const own = memory + stages * stage + (warp * lines + line) * places;
        const Block block{memory, y_block, z_block, ((warp / C::beside + C::reach_z) * tile_y + warp % C::beside * lines + line + C::reach_y) * C::n, warp, thread % 32};
        if (inside) lines_at<true>(thread % L, block, y + line, z, begin, end, own);
        else lines_at<false>(thread % L, block, y + line, z, begin, end, own);
        block_barrier();
    }

private:
    struct Block {
        T* memory;
        int y, z, row;  ///< its first line; where a line is in a tile
        int warp, number;
    };
    static __device__ __forceinline__ int smaller(int i, int j) { return i < j ? i : j; }
    static constexpr __device__ bool diagonal(int f) {
        for (int k = 0; k < C::rhs_reads::count; ++k)
            if (C::rhs_reads::at(k, 0) == f && C::rhs_reads::at(k, 2) != 0 && C::rhs_reads::at(k, 3) != 0) return true;
        return false;
    }
    template <int f, int axis>
    static __device__ __forceinline__ int mapped(int i, int n) {
        if (i < 0) i = C::edge(f, axis, 0) == edge_periodic ? i + n : -1 - i;
        if (i >= n) i = C::edge(f, axis, 1) == edge_periodic ? i - n : 2 * n - 1 - i;
        return i < 0 ? 0 : i < n ? i : n - 1;
    }

    /// Where the rows that a warp brings lie in a mesh, from this lane's first value on; -1: nowhere.
    static constexpr int each = (tile_y * tile_z + C::warps - 1) / C::warps, fields_tiled = tiles_before(C::fields) > 0 ? tiles_before(C::fields) : 1;
    struct Rows {
        int at[fields_tiled][each];
    };
    static constexpr __device__ int chunk(int f) { return C::aligned(f) && C::n * static_cast<int>(sizeof(T)) % 16 == 0 ? 16 / static_cast<int>(sizeof(T)) : 1; }

    template <int f = 0>
    static __device__ __forceinline__ void find_rows(Rows& rows, const Block& block) {
        if constexpr (f < C::fields) {
            if constexpr (tiled(f)) {
#pragma unroll
                for (int k = 0; k < each; ++k) {
                    const int r = k * C::warps + block.warp, ty = r % tile_y, tz = r / tile_y;
                    const bool corner = !diagonal(f) && (ty < C::reach_y || ty >= tile_y - C::reach_y) && (tz < C::reach_z || tz >= tile_z - C::reach_z);
                    const int y = mapped<f, 1>(block.y + ty - C::reach_y, C::ny), z = mapped<f, 2>(block.z + tz - C::reach_z, C::nz);
                    rows.at[tiles_before(f)][k] = unforeseen(r >= tile_y * tile_z || corner || block.number * chunk(f) >= C::n ? -1 : y * static_cast<int>(C::stride(f, 1)) + z * static_cast<int>(C::stride(f, 2)) + block.number * chunk(f) * static_cast<int>(C::stride(f, 0)));
                }
            }
            find_rows<f + 1>(rows, block);
        }
    }

    /// A mesh's rows, on their way into a stage.
    template <int f = 0>
    __device__ __forceinline__ void bring_tiles(const Rows& rows, const Block& block, int which, std::int64_t mesh) const {
        if constexpr (f < C::fields) {
            if constexpr (tiled(f)) {
                constexpr int values = chunk(f), size = static_cast<int>(sizeof(T));
                const SharedPlace to = shared_place(block.memory + which * stage + tiles_before(f) * tile + block.warp * C::n + block.number * values);
                const T* const from = unforeseen_place(a.field[f].data + mesh * C::stride(f, 3));
#pragma unroll
                for (int k = 0; k < each; ++k) {
                    const int at = rows.at[tiles_before(f)][k];
#pragma unroll
                    for (int x = 0; x < C::n; x += 32 * values)
                        bring_if<values * size>(at >= 0 && (x == 0 || x + 32 * values <= C::n || block.number * values < C::n - x), to + (k * C::warps * C::n + x) * size, from + static_cast<unsigned>(at) + x * static_cast<int>(C::stride(f, 0)));
                }
            }
            bring_tiles<f + 1>(rows, block, which, mesh);
        }
    }

    /// Where a lane finds what lies before its first point and behind its last one, from its first point on.
    struct Tiles {
        int low[fields_tiled], high[fields_tiled];
    };
    template <int f = 0>
    static __device__ __forceinline__ void find_ends(Tiles& tiles, int first) {
        if constexpr (f < C::fields) {
            if constexpr (tiled(f)) {
                using Beyond = Near<C, false>;
                tiles.low[tiles_before(f)] = unforeseen(Beyond::template place<f, 0, -1>(first, C::n) - first);
                tiles.high[tiles_before(f)] = unforeseen(Beyond::template place<f, 0, 1>(first + R - 1, C::n) - first);
            }
            find_ends<f + 1>(tiles, first);
        }
    }

    /// Around point first + j of a line: in a tile, or, if there is none, in memory. Inside: nothing beyond a side of y or z.
    template <bool Inside, bool InTiles, int j>
    struct Look {
        const MeshArguments<T>& a;
        const T* memory;
        const Tiles& at_tiles;
        int at_point, first, y, z;
        std::int64_t mesh;

        template <int f, int dx, int dy, int dz>
        __device__ __forceinline__ T at() const {
            using Beyond = Near<C, false>;
            constexpr bool side = (dx < 0 && j + dx < 0) || (dx > 0 && j + dx >= R);
            T value;
            if constexpr (InTiles && tiled(f)) {
                const T* const from = memory + (at_point + (side ? dx < 0 ? at_tiles.low[tiles_before(f)] : at_tiles.high[tiles_before(f)] : 0));
                value = from[tiles_before(f) * tile + (side ? 0 : j + dx) + (dz * tile_y + dy) * C::n];
            } else {
                constexpr long along_x = C::stride(f, 0), along_y = C::stride(f, 1), along_z = C::stride(f, 2);
                const T* from = a.field[f].data + mesh * C::stride(f, 3) + (first * along_x + y * along_y + z * along_z);
                if constexpr (side) from += (Beyond::template place<f, 0, dx>(first + j, C::n) - (first + j)) * along_x;
                if constexpr (!Inside && dy != 0) from += (Beyond::template place<f, 1, dy>(y, C::ny) - y) * along_y;
                if constexpr (!Inside && dz != 0) from += (Beyond::template place<f, 2, dz>(z, C::nz) - z) * along_z;
                value = from[(j + (side ? 0 : dx)) * along_x + (Inside ? dy * along_y + dz * along_z : 0)];
            }
            if constexpr (side) value = mirrored<f, 0, dx>(first + j, C::n, value);
            if constexpr (!Inside) value = mirrored<f, 2, dz>(z, C::nz, mirrored<f, 1, dy>(y, C::ny, value));
            return value;
        }
        template <int f, int axis, int d>
        __device__ __forceinline__ T mirrored(int at, int n, T value) const {
            if (d < 0 && C::edge(f, axis, 0) == edge_odd) return at + d < 0 ? a.field[f].twice[axis][0] - value : value;
            if (d > 0 && C::edge(f, axis, 1) == edge_odd) return at + d >= n ? a.field[f].twice[axis][1] - value : value;
            return value;
        }
    };
    template <bool Inside, bool InTiles, int j = 0>
    __device__ __forceinline__ void take(TakenKept<C> (&near)[R], const T* memory, const Tiles& tiles, int at, int first, int y, int z, std::int64_t mesh) const {
        if constexpr (j < R) {
            near[j].take(Look<Inside, InTiles, j>{a, memory, tiles, at, first, y, z, mesh});
            take<Inside, InTiles, j + 1>(near, memory, tiles, at, first, y, z, mesh);
        }
    }

    template <bool Inside>
    __device__ __forceinline__ void lines_at(int lane, const Block& block, int y_asked, int z_asked, std::int64_t begin, std::int64_t end, T* own) const {
        constexpr std::int64_t points = std::int64_t{C::nx} * C::ny * C::nz;
        const int first = lane * R, y = Inside ? y_asked : smaller(y_asked, C::ny - 1), z = Inside ? z_asked : smaller(z_asked, C::nz - 1);
        const bool there = Inside || (y_asked < C::ny && z_asked < C::nz);
        T* const rows = own + staged(first);
        Rows brought_rows;
        find_rows(brought_rows, block);
        Tiles tiles;
        find_ends(tiles, first);
        const int at_first = unforeseen(block.row + first);
        const int count = static_cast<int>(end - begin), to_next = a.backwards ? -1 : 1;
        int mesh = static_cast<int>(a.backwards ? end - 1 : begin);
#pragma unroll
        for (int k = 0; k < stages - 1; ++k) {
            if (k < count) bring_tiles(brought_rows, block, k, mesh + k * to_next);
            bring_as_one();
        }
        T held[R][kept] = {}, low = 0, high = 0;
        HeldSegment<T, R, L, C::ring> matrix;
        if constexpr (C::kept > 0) {
            TakenKept<C> near[R];
            take<Inside, false>(near, nullptr, tiles, 0, first, y, z, begin);
#pragma unroll
            for (int j = 0; j < R; ++j) {
                C::keep(near[j], p, held[j], std::int64_t{first + j}, std::int64_t{y}, std::int64_t{z}, begin, a.step);
#pragma unroll
                for (int v = 0; v < C::kept; ++v) held[j][v] = j > 0 && C::shared(v, 0) == 0 ? held[j > 0 ? j - 1 : 0][C::shared(v, 1)] : unforeseen(held[j][v]);
            }
        }
#pragma unroll
        for (int i = 0; i < R; ++i) {
            const int x = first + i;
            T row[3];
#pragma unroll
            for (int c = 0; c < 3; ++c) row[c] = C::has_coefficients ? T(c == 1) : pass.constant[c];
            if constexpr (C::has_coefficients) {
                Taken<C, typename C::coefficients_reads> near;
                near.take(Near<C, false>{a, x, y, z, begin, T(0)});
                C::coefficients(near, p, row, std::int64_t{x}, std::int64_t{y}, std::int64_t{z}, begin, a.step);
#pragma unroll
                for (int c = 0; c < 3; ++c) row[c] = unforeseen(row[c]);
            }
            if constexpr (!C::ring) {
                if (i == 0 && lane == 0) {
                    if (C::end(0) == edge_odd) low = pass.twice[0] * row[0];
                    row[1] += C::end(0) == edge_even ? row[0] : -row[0], row[0] = 0;
                }
                if (i == R - 1 && lane == L - 1) {
                    if (C::end(1) == edge_odd) high = pass.twice[1] * row[2];
                    row[1] += C::end(1) == edge_even ? row[2] : -row[2], row[2] = 0;
                }
            }
            matrix.add(i, row);
        }
        low = unforeseen(low), high = unforeseen(high);
        matrix.join(lane);
        int which = 0;
#pragma unroll 1
        for (int turn = 0; turn < count; ++turn, mesh += to_next) {
            brought_but<stages - 2>();
            block_barrier();  // this mesh's rows are there; nobody looks at those of the one before, nor at its lines
            if (turn + stages - 1 < count) bring_tiles(brought_rows, block, which == 0 ? stages - 1 : which - 1, mesh + (stages - 1) * to_next);
            bring_as_one();
            TakenKept<C> near[R];
            take<Inside, true>(near, block.memory, tiles, unforeseen(which * stage + at_first), first, y, z, mesh);
            which = which + 1 < stages ? which + 1 : 0;
            T d[R];
#pragma unroll
            for (int j = 0; j < R; ++j) {
                T out[1] = {};
#pragma unroll
                for (int v = 0; v < kept; ++v) near[j].held[v] = held[j][v];
                C::rhs(near[j], p, out, std::int64_t{first + j}, std::int64_t{y}, std::int64_t{z}, std::int64_t{mesh}, a.step);
                d[j] = out[0];
            }
            if (!C::ring && C::end(0) == edge_odd) d[0] -= low;
            if (!C::ring && C::end(1) == edge_odd) d[R - 1] -= high;
            matrix.solve(d, lane);
            const bool bad = !(d[0] * T(0) + d[R - 1] * T(0) == T(0)) && there;
#pragma unroll
            for (int i = 0; i < R; ++i) rows[i] = d[i];
            warp_barrier();
            report(lane, bad, y, z, mesh);
            T* const to = a.values + std::int64_t{mesh} * points + ((z * C::ny + y) * C::nx + lane);
            if (there) {
#pragma unroll
                for (int j = 0; j < R; ++j) to[L * j] = own[in_order(lane, j)];
            }
        }
    }

    static __device__ __forceinline__ int in_order(int lane, int j) {
        if constexpr (padding == 0 || L % R == 0) return staged(lane) + j * staged(L);
        else return staged(lane + L * j);
    }
    static __device__ __forceinline__ int staged(int x) { return x + (padding ? x / R : 0); }

    /// Rare: lines that are not finite, each once.
    __device__ __forceinline__ void report(int lane, bool bad, int y, int z, std::int64_t mesh) const {
        const unsigned marks = lanes_with(bad);
        if (!marks || lane != 0 || !(marks >> (thread_number() % 32) & (~0u >> (32 - L)))) return;
        *reinterpret_cast<volatile unsigned char*>(&a.failed[mesh]) = static_cast<unsigned char>(C::line + 1);
        report_line(a.state, a.sweep, MeshState::key(C::line, ((mesh * C::nz + z) * C::ny + y) * C::nx, false, C::not_finite));
    }
};

#ifdef __CUDACC__

/// A task is a piece of `pass.tasks` meshes.
template <class C>
__device__ __forceinline__ void held_rows(const MeshArguments<typename C::real>& a, const typename C::Parameters& p, const PassArguments<typename C::real>& pass) {
    using Own = HeldRows<C>;
    extern __shared__ int4 shared[];
    auto* const memory = reinterpret_cast<typename C::real*>(shared);
    follow_previous();
    if (!runs(a.state, a.sweep)) return;
    const auto meshes = static_cast<unsigned>(a.extent[3]), each = static_cast<unsigned>(pass.tasks), tasks = (meshes + each - 1) / each * Own::pieces;
    for (unsigned task = blockIdx.x; task < tasks; task += gridDim.x) {
        const unsigned number = a.backwards ? tasks - 1 - task : task, begin = number / Own::pieces * each;
        Own{a, p, pass}.run(number % Own::pieces, begin, begin + each < meshes ? begin + each : meshes, static_cast<int>(threadIdx.x), memory);
    }
}

#endif

}  // namespace trifold::cuda::fused
