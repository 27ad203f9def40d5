// SPDX-License-Identifier: BSD-3-Clause
// What a block brings into shared memory, columns side by side, without registers in between, and what it stores from there: element by element
// (cp.async), lanes along the columns, any alignment and stride. One element of padding after every R rows of the tile keeps a warp that walks down
// a column free of bank conflicts. (The copy engine takes some 9 cycles for each piece, too many where a piece is 64 bytes.)
// Words per row: what is read, once.
#pragma once

#include "backends/cuda/tridiagonal/block/copy_engine.cuh"
#include "backends/cuda/tridiagonal/block/tile_place.cuh"

namespace trifold::cuda {

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

/// Where row p of column lane w is: R rows of W columns, then one element of padding.
template <int R, int W>
__device__ __forceinline__ int element(int p, int w) {
    return p * W + p / R + w;
}

/// Calls visit(address in memory, element of the tile) for every element of a tile of columns. Row p of group g of a column lane is
/// row g pitch + p of it. Of every column rows from `low` to before `high`.
template <int R, int W, class T, class Visit>
__device__ __forceinline__ void walk_columns(const TileJob<T>& job, const TileOperand<T>& operand, const TilePlace& place, T* from, const Walk& walk,
                                             int low, int high, Visit visit) {
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
            for (int row = walk.row; row < high; row += walk.rows_at_once) {
                if (row >= low) visit(at, to, column);
                at += step, to += down;
            }
        } else {
#pragma unroll 1
            for (int row = walk.row; row < high; row += walk.rows_at_once) {
                if (row >= low) visit(at, element<R, W>(top + row, w), column);
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
        // The first of lower and the last of upper need not exist.
        const int low = k == 0 && place.first_row == 0, high = place.rows - (k == 2 && place.first_row + place.rows == job.rows);
        walk_columns<R, W>(job, operand, place, from, walk, low, high,
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
    if (all) walk_columns<R, W>(job, job.operand[4], place, to, walk, 0, place.rows, [&](T* target, int from, int) { __stcs(target, tile[from]); });
    else walk_columns<R, W>(job, job.operand[4], place, to, walk, 0, place.rows, [&](T* target, int from, int column) {
        if (keep(column)) *target = tile[from];
    });
}

}  // namespace trifold::cuda
