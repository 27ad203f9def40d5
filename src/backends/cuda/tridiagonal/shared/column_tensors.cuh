// SPDX-License-Identifier: BSD-3-Clause
// Sets of columns whose rows begin anywhere, on their way into shared memory as tensors: of every so many rows (single precision four, double two) one begins at the same offset from a
// 16-byte boundary, and these are a tensor, begun a little before. Asked for by one thread at a few requests, where a piece of a row at a time keeps all warps for thousands of cycles.
//
// In shared memory: [part of the columns][offset][row][column], parts of 128 columns, since a box has 256 elements at most.
#pragma once

#include "backends/cuda/tridiagonal/block/tensor_map.hpp"
#include "backends/cuda/tridiagonal/shared/column_sets.cuh"

namespace trifold::cuda {

template <class T>
inline constexpr unsigned tensor_offsets = 16 / sizeof(T);

struct ShiftedMaps {
    TensorMap rhs[4];
};

inline constexpr int most_tensor_columns = 128;

/// Columns of a box, but for what is before and behind them.
constexpr int tensor_columns(int across) { return across < most_tensor_columns ? across : most_tensor_columns; }

template <class T, int R>
struct ShiftedSets {
    static constexpr unsigned E = tensor_offsets<T>;
    static_assert(R % E == 0);
    const SharedJob<T>& job;
    const ShiftedMaps& maps;
    T* const memory;
    const unsigned barrier;
    const int first_row, rows;
    using Source = unsigned;  ///< a tile

    __device__ __forceinline__ ShiftedSets(const SharedJob<T>& job, const ShiftedMaps& maps, T* memory, unsigned barrier, int first_row, int rows)
        : job(job), maps(maps), memory(memory), barrier(barrier), first_row(first_row), rows(rows) {
        if (threadIdx.x == 0) Arrival{barrier}.prepare(1);
        asm volatile("fence.mbarrier_init.release.cluster;\n\tfence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
    }

    __device__ __forceinline__ Source source(unsigned tile) const { return tile; }
    __device__ __forceinline__ void touch(unsigned tile) const { touch_line_ends(job, tile, first_row, rows); }

    __device__ __forceinline__ void load(Source tile) const {
        if (threadIdx.x || tile >= job.tiles) return;
        const Corner corner(*this, tile);
        const int each = tensor_columns(job.across), parts = job.across / each;
        const unsigned region = static_cast<unsigned>(job.segments * R / E * (each + E) * static_cast<int>(sizeof(T)));
        Arrival{barrier}.expect(static_cast<unsigned>(parts * E) * region);
        unsigned to = shared_address(memory);
#pragma unroll 1
        for (int p = 0; p < parts; ++p)
#pragma unroll
            for (unsigned e = 0; e < E; ++e, to += region) {
                const unsigned row = corner.row + e, map = row % E, before = (base() + map * static_cast<unsigned>(job.rhs.row_stride)) % E;
                const int column = static_cast<int>(corner.column + before & ~(E - 1u)) + p * each;
                asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to), "l"(&maps.rhs[map]), "r"(column),
                             "r"(row / E), "r"(barrier)
                             : "memory");
            }
    }

    __device__ __forceinline__ void take(unsigned tile, unsigned parity, T (&y)[R]) const {
        if (tile < job.tiles) Arrival{barrier}.wait(parity);
        const int each = tensor_columns(job.across), pitch = each + E, region = job.segments * R / E * pitch;
        const int segment = static_cast<int>(threadIdx.x) / job.across, column = static_cast<int>(threadIdx.x) & (job.across - 1);
        const T* const from = memory + column / each * E * region + segment * (R / E) * pitch + column % each;
        const Corner corner(*this, tile);
        const T* at[E];
#pragma unroll
        for (unsigned e = 0; e < E; ++e) at[e] = from + e * region + (base() + corner.column + (corner.row + e) * static_cast<unsigned>(job.rhs.row_stride)) % E;
        const int count = rows - segment * R;
        if (job.plane_rows && count < R) {
            // What lies behind a plane's rows is another's.
#pragma unroll
            for (int i = 0; i < R; ++i) y[i] = i < count ? at[i % E][i / E * pitch] : T(0);
        } else {
#pragma unroll
            for (int i = 0; i < R; ++i) y[i] = at[i % E][i / E * pitch];
        }
        __syncthreads();
    }

    __device__ __forceinline__ void abandon(unsigned tile) const {
        if (tile < job.tiles) Arrival{barrier}.wait(0);
    }

private:
    /// Of the block's part of a set, rows of all planes counted.
    struct Corner {
        unsigned column, row;
        __device__ __forceinline__ Corner(const ShiftedSets& sets, unsigned tile) {
            const unsigned line = tile / sets.job.tiles_per_line;
            column = (tile - line * sets.job.tiles_per_line) * sets.job.set_columns, row = line * sets.job.plane_rows + static_cast<unsigned>(sets.first_row);
        }
    };

    __device__ __forceinline__ unsigned base() const { return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(job.rhs.data) / sizeof(T)); }
};

}  // namespace trifold::cuda
