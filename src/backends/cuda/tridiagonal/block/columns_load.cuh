// SPDX-License-Identifier: BSD-3-Clause
// Slices of columns on their way into shared memory: by the copy engine where rows are aligned to 16 bytes (one request for all rows of
// an operand), else element by element; either way nothing waits for them but the warp that eliminates them.
#pragma once

#include "backends/cuda/tridiagonal/block/columns_job.hpp"

namespace trifold::cuda {

__device__ __forceinline__ unsigned shared_word(const void* at) { return static_cast<unsigned>(__cvta_generic_to_shared(at)); }

/// A slice is there when its barrier has changed phase.
struct SliceBarrier {
    unsigned at;

    __device__ void prepare(int arrivals) const { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(arrivals) : "memory"); }
    __device__ void expect(unsigned bytes) const {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes) : "memory");
    }
    /// This thread's element copies are to be waited for.
    __device__ void arrive_with_copies() const { asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(at) : "memory"); }
    __device__ void wait(unsigned phase) const {
        unsigned done;
        do {
            asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                         : "=r"(done)
                         : "r"(at), "r"(phase)
                         : "memory");
        } while (!done);
    }
};

/// First column of a tile and where it stands in the outer levels.
struct ColumnPlace {
    std::int64_t column;
    unsigned outer[3];
};

template <class T>
__device__ __forceinline__ ColumnPlace column_place(const ColumnJob<T>& job, unsigned tile) {
    ColumnPlace place{0, {0, 0, 0}};
    if (job.one_run) {
        place.column = static_cast<std::int64_t>(tile) * job.cut.columns;
        return place;
    }
    const unsigned run = tile / job.tiles_per_run;
    place.column = static_cast<std::int64_t>(tile - run * job.tiles_per_run) * job.cut.columns;
    place.outer[2] = run;
    if (!job.deep) return place;
    const unsigned rest = run / job.outer_extent[2];
    place.outer[2] = run - rest * job.outer_extent[2];
    place.outer[0] = rest / job.outer_extent[1];
    place.outer[1] = rest - place.outer[0] * job.outer_extent[1];
    return place;
}

template <class T>
__device__ __forceinline__ T* column_corner(const TileOperand<T>& operand, const ColumnPlace& place, std::int64_t column, int row) {
    return operand.data + column * operand.column_stride + row * operand.row_stride + place.outer[0] * operand.outer_stride[0] +
           place.outer[1] * operand.outer_stride[1] + place.outer[2] * operand.outer_stride[2];
}

/// The warps of a slice ask for it: `slot` becomes [operand][row][column of the slice]. column, row: the slice's first ones; part: which
/// of the Share warps this is.
template <class T, int LaneColumns, int Share>
__device__ __forceinline__ void fill_slice(const ColumnJob<T>& job, const ColumnPlace& place, std::int64_t column, int row, T* slot, SliceBarrier barrier,
                                           int lane, int part) {
    const int operand_elements = job.cut.slot_rows * 32 * Share;
    if (lane == 0 && part == 0) {
        barrier.expect(job.tensor_bytes);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            if (job.path[k] != ColumnPath::tensor) continue;
            const unsigned to = shared_word(slot + k * operand_elements);
            const int x = static_cast<int>(column);
            if (job.deep)
                asm volatile(
                    "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"(to),
                    "l"(&job.maps[k]), "r"(x), "r"(row), "r"(place.outer[2]), "r"(place.outer[1]), "r"(place.outer[0]), "r"(barrier.at)
                    : "memory");
            else
                asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
                             "l"(&job.maps[k]), "r"(x), "r"(row), "r"(place.outer[2]), "r"(barrier.at)
                             : "memory");
        }
    }
    if (job.elements) {
        const std::int64_t mine = column + part * LaneColumns + lane % LaneColumns;
        const int first = row + lane / LaneColumns * column_chunk;
        const int count = mine < job.columns ? min(column_chunk, job.rows - first) : 0;
#pragma unroll 1
        for (int k = 0; k < 4; ++k) {
            if (job.path[k] != ColumnPath::elements) continue;
            const TileOperand<T>& operand = job.operand[k];
            const T* from = column_corner(operand, place, mine, first);
            unsigned to = shared_word(slot + k * operand_elements + lane / LaneColumns * column_chunk * LaneColumns + part * LaneColumns + lane % LaneColumns);
#pragma unroll 4
            for (int i = 0; i < count; ++i) {
                asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(sizeof(T)) : "memory");
                from += operand.row_stride, to += Share * LaneColumns * sizeof(T);
            }
        }
        barrier.arrive_with_copies();
    }
}

}  // namespace trifold::cuda
