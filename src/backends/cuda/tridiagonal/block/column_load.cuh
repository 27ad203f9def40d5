// SPDX-License-Identifier: BSD-3-Clause
// What a warp (rows side by side) or a block (columns side by side) brings into shared memory, without registers in between,
// and what it stores from there.
//
//   rows side by side     runs of rows by the copy engine (cp.async.bulk); a run starts in shared memory at the same offset from a
//                         16-byte boundary as in global memory, so any start and any length go at full width.
//   columns side by side  element by element (cp.async), lanes along the columns: any alignment and stride; one element of
//                         padding after every R rows of the tile keeps a warp that walks down a column free of bank conflicts. (The
//                         copy engine takes some 9 cycles for each piece, too many where a piece is 64 bytes.)
// Words per row: what is read, once.
#pragma once

#include "backends/cuda/tridiagonal/block/copy_engine.cuh"
#include "backends/cuda/tridiagonal/block/tile_place.cuh"

namespace trifold::cuda {

// ---- rows side by side, by one warp ----

/// The four operands of a tile, by one warp. tiles: of the first operand, the others `apart` on. Returns how many
/// elements before an operand's first one its place in shared memory has been shifted, four bits per operand.
template <class T>
__device__ __forceinline__ unsigned load_runs(const TileJob<T>& job, const TilePlace& place, T* tiles, int apart, Arrival arrival, int lane) {
    constexpr int E = 16 / sizeof(T);
    using Path = typename TileOperand<T>::Path;
    // Lane by lane: operand lane % 4, runs lane / 4 and every eighth after it.
    const int mine = lane & 3;
    const TileOperand<T>& operand = job.operand[mine];
    const T* const from = corner(job, operand, place);
    const bool runs_mine = operand.path == Path::vectors;
    const int shift = runs_mine ? offset_in_vector(from) : 0;
    unsigned bytes = 0;
    if (runs_mine) {
        const unsigned target = shared_address(tiles + mine * apart + shift);
        const bool merged = job.merged && place.columns > 1;
        const int runs = merged ? 1 : place.columns, length = merged ? place.columns * job.pitch : place.rows;
#pragma unroll 1
        for (int run = lane >> 2; run < runs; run += 8) {
            const T* const source = from + run * operand.column_stride;
            const unsigned at = target + run * job.pitch * sizeof(T);
            const int head = min((E - offset_in_vector(source)) % E, length), body = (length - head) / E * E;
            if (body) arrival.copy(at + head * sizeof(T), source + head, body * sizeof(T)), bytes += body * sizeof(T);
#pragma unroll 1
            for (int i = 0; i < head; ++i) copy_async(at + i * sizeof(T), source + i);
#pragma unroll 1
            for (int i = head + body; i < length; ++i) copy_async(at + i * sizeof(T), source + i);
        }
    }
    arrival.expect(bytes);
    const unsigned shifts = __reduce_or_sync(~0u, static_cast<unsigned>(shift) << 4 * mine);
    if (__any_sync(~0u, !runs_mine)) {
#pragma unroll 1
        for (int k = 0; k < 4; ++k) {
            const TileOperand<T>& other = job.operand[k];
            if (other.path == Path::vectors) continue;
            T* const to = tiles + k * apart;
            if (other.path == Path::scalar) {
                for (int i = lane; i < (place.columns - 1) * job.pitch + place.rows; i += 32) to[i] = other.value;
                continue;
            }
            const T* const source = corner(job, other, place);
            int column = 0, row = lane;
            while (true) {
                while (row >= place.rows) row -= place.rows, ++column;
                if (column >= place.columns) break;
                copy_async(shared_address(to + column * job.pitch + row), source + column * other.column_stride + row * other.row_stride);
                row += 32;
            }
        }
    }
    return shifts;
}

/// from: as `to` above; system k of the tile is stored where keep(k), every one where `all`.
template <class T, class Keep>
__device__ __forceinline__ void store_runs(const TileJob<T>& job, const TileOperand<T>& operand, const TilePlace& place, const T* from, bool all,
                                           Keep keep, int lane) {
    constexpr int E = 16 / sizeof(T);
    T* const to = corner(job, operand, place);
    const bool merged = all && job.merged && operand.row_stride == 1 && operand.column_stride == job.pitch;
    const bool same_offset = operand.row_stride == 1 && reinterpret_cast<std::uintptr_t>(to) % 16 == shared_address(from) % 16;
    const bool vectors = same_offset && (merged || place.columns == 1 || (operand.column_stride - job.pitch) % E == 0);
    const int runs = merged ? 1 : place.columns, length = merged ? place.columns * job.pitch : place.rows;
    if (vectors) {
        for (int run = lane; run < runs; run += 32) {
            if (!all && !keep(run)) continue;
            T* const target = to + run * operand.column_stride;
            const T* const source = from + run * job.pitch;
            const int head = min((E - offset_in_vector(target)) % E, length), body = (length - head) / E * E;
            if (body)
                asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(target + head), "r"(shared_address(source + head)),
                             "r"(static_cast<unsigned>(body * sizeof(T)))
                             : "memory");
            for (int i = 0; i < head; ++i) target[i] = source[i];
            for (int i = head + body; i < length; ++i) target[i] = source[i];
        }
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    } else if (runs == 1) {
        if (all || keep(0))
            for (int i = lane; i < length; i += 32) __stcs(to + i * operand.row_stride, from[i]);
    } else {
        int column = 0, row = lane;
        while (true) {
            while (row >= place.rows) row -= place.rows, ++column;
            if (column >= place.columns) break;
            if (all || keep(column)) to[column * operand.column_stride + row * operand.row_stride] = from[column * job.pitch + row];
            row += 32;
        }
    }
}

// ---- columns side by side, W per row of the tile, by a block ----

/// How the lanes of all warps walk over `columns` side by side: `wide` of them along a row, as many rows at a time as that leaves.
struct Walk {
    int across, row, rows_at_once, wide;

    __device__ explicit Walk(int columns) {
        const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) >> 5;
        const int bits = columns >= 32 ? 5 : 32 - __clz(columns - 1);
        wide = 1 << bits;
        across = lane & (wide - 1);
        row = (warp << (5 - bits)) + (lane >> bits);
        rows_at_once = static_cast<int>(blockDim.x) >> bits;
    }
};

/// Where row p of column lane w is: R rows of W columns, then one element of padding. W = 1: without.
template <int R, int W>
__device__ __forceinline__ int element(int p, int w) {
    return W == 1 ? p : p * W + p / R + w;
}

/// Calls visit(address in memory, element of the tile) for every element of a tile of columns. Row p of group g of a column lane is
/// row g pitch + p of it.
template <int R, int W, class T, class Visit>
__device__ __forceinline__ void walk_columns(const TileJob<T>& job, const TileOperand<T>& operand, const TilePlace& place, T* from, const Walk& walk,
                                             Visit visit) {
    const std::int64_t step = walk.rows_at_once * operand.row_stride;
    T* const first = from + walk.row * operand.row_stride;
    const int down = element<R, W>(walk.rows_at_once, 0);
#pragma unroll 1
    for (int column = walk.across; column < place.columns; column += walk.wide) {
        T* at = first + column * operand.column_stride;
        const int top = column / W * job.pitch, w = column % W;
        if (walk.rows_at_once % R == 0) {
            int to = element<R, W>(top + walk.row, w);
#pragma unroll 4
            for (int row = walk.row; row < place.rows; row += walk.rows_at_once) {
                visit(at, to, column);
                at += step, to += down;
            }
        } else {
#pragma unroll 1
            for (int row = walk.row; row < place.rows; row += walk.rows_at_once) {
                visit(at, element<R, W>(top + row, w), column);
                at += step;
            }
        }
    }
}

/// Four operands, the tiles `job.tile_elements` apart. at: where the lane's operand (lane % 8: lower, diag, upper, rhs, x) begins.
template <int R, int W, class T>
__device__ __forceinline__ void load_columns(const TileJob<T>& job, const TilePlace& place, T* tiles, T* at, const Walk& walk) {
#pragma unroll 1
    for (int k = 0; k < 4; ++k) {
        const TileOperand<T>& operand = job.operand[k];
        T* const tile = tiles + k * job.tile_elements;
        if (operand.path == TileOperand<T>::Path::scalar) {
            for (int i = static_cast<int>(threadIdx.x); i < job.tile_elements; i += static_cast<int>(blockDim.x)) tile[i] = operand.value;
            continue;
        }
        T* const from = reinterpret_cast<T*>(__shfl_sync(~0u, reinterpret_cast<unsigned long long>(at), k));
        const unsigned target = shared_address(tile);
        walk_columns<R, W>(job, operand, place, from, walk,
                           [&](const T* source, int to, int) { copy_async(target + static_cast<unsigned>(to * sizeof(T)), source); });
    }
}

/// Asks for another tile to be brought into the second-level cache. at: as above.
template <class T>
__device__ __forceinline__ void prefetch_columns(const TileJob<T>& job, const TilePlace& place, T* at) {
#pragma unroll 1
    for (int k = 0; k < 4; ++k) {
        const TileOperand<T>& operand = job.operand[k];
        if (operand.path == TileOperand<T>::Path::scalar || operand.column_stride != 1) continue;
        const T* const from = reinterpret_cast<T*>(__shfl_sync(~0u, reinterpret_cast<unsigned long long>(at), k));
        const int bytes = place.columns * static_cast<int>(sizeof(T));
        for (int row = static_cast<int>(threadIdx.x); row < place.rows; row += static_cast<int>(blockDim.x)) {
            const char* const line = reinterpret_cast<const char*>(from + row * operand.row_stride);
            for (int b = 0; b < bytes; b += 64) asm volatile("prefetch.global.L2 [%0];" ::"l"(line + b));
        }
    }
}

template <int R, int W, class T, class Keep>
__device__ __forceinline__ void store_columns(const TileJob<T>& job, const TilePlace& place, const T* tile, T* at, const Walk& walk, bool all, Keep keep) {
    T* const to = reinterpret_cast<T*>(__shfl_sync(~0u, reinterpret_cast<unsigned long long>(at), 4));
    if (all) walk_columns<R, W>(job, job.operand[4], place, to, walk, [&](T* target, int from, int) { __stcs(target, tile[from]); });
    else walk_columns<R, W>(job, job.operand[4], place, to, walk, [&](T* target, int from, int column) {
        if (keep(column)) *target = tile[from];
    });
}

}  // namespace trifold::cuda
