// SPDX-License-Identifier: BSD-3-Clause
// Where a tile of columns lies, and its slices on their way into shared memory by the copy engine (cp.async.bulk.tensor), one request for all rows of an
// operand; nothing waits for them but the warps that eliminate them.
#pragma once

#include "backends/cuda/tridiagonal/block/columns_job.hpp"
#include "backends/cuda/tridiagonal/block/copy_engine.cuh"

namespace trifold::cuda {

/// First column of a tile and where it stands in the outer levels.
struct ColumnPlace {
    std::int64_t column;
    unsigned outer[3];
};

template <class T>
__device__ __forceinline__ ColumnPlace place_in_run(const ColumnJob<T>& job, unsigned run, std::int64_t column) {
    ColumnPlace place{column, {0, 0, 0}};
    if (job.one_run) return place;
    place.outer[2] = run;
    if (!job.deep) return place;
    const unsigned rest = run / job.outer_extent[2];
    place.outer[2] = run - rest * job.outer_extent[2];
    place.outer[0] = rest / job.outer_extent[1];
    place.outer[1] = rest - place.outer[0] * job.outer_extent[1];
    return place;
}

template <class T>
__device__ __forceinline__ ColumnPlace column_place(const ColumnJob<T>& job, unsigned tile) {
    if (job.one_run) return place_in_run(job, 0, static_cast<std::int64_t>(job.order(tile)) * job.cut.columns);
    const unsigned run = tile / job.tiles_per_run;
    return place_in_run(job, run, static_cast<std::int64_t>(tile - run * job.tiles_per_run) * job.cut.columns);
}

template <class T>
__device__ __forceinline__ T* column_corner(const TileOperand<T>& operand, const ColumnPlace& place, std::int64_t column, int row) {
    return operand.data + column * operand.column_stride + row * operand.row_stride + place.outer[0] * operand.outer_stride[0] +
           place.outer[1] * operand.outer_stride[1] + place.outer[2] * operand.outer_stride[2];
}

/// By all lanes of a warp: the bands of a slice's rows, [row][lower, diag, upper, nothing]; an arrival each. What is a number, or not read, stays as it is.
template <class T, class S>
__device__ __forceinline__ void load_bands(const ColumnJob<T>& job, const ColumnPlace& place, int row, T* to, Arrival arrival) {
    const int lane = static_cast<int>(threadIdx.x) & 31;
#pragma unroll 1
    for (int e = lane; e < 3 * S::rows; e += 32) {
        const int k = e / S::rows, i = e % S::rows, at = row + i;
        if (job.operand[k].data && at + (k == 2) < job.rows && (k > 0 || at > 0)) copy_async(shared_address(to + 4 * i + k), column_corner(job.operand[k], place, 0, at));
    }
    arrival.arrive_after_copies();
}

/// By one thread. column, row: the slice's first ones. Maps of lower begin with its row 1, those of upper end before its last: what need not exist is a zero then. Not those of rings (Closed).
template <class T, int R, int L, int Share, bool Shifted, bool Closed = false, ColumnBands Bands = ColumnBands::own>
__device__ __forceinline__ void load_slice(const ColumnJob<T>& job, const ColumnPlace& place, std::int64_t column, int row, T* to, Arrival arrival) {
    using S = SliceLayout<T, R, L, Share, Shifted, Bands>;
    arrival.expect(job.slice_bytes);
    const int x = static_cast<int>(column);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        if (S::shared_bands ? k < 3 : S::shared_couplings ? k % 2 == 0 : !job.operand[k].data) continue;
        const unsigned target = shared_address(to + (k == 3 ? S::rhs : S::shared_couplings ? S::diag : k * S::operand));
        const bool later = k == 0 && !Closed;
        if constexpr (Shifted) {
            const auto first = static_cast<unsigned>(row + (later ? S::offsets - 1 : 0) + place.outer[0] * job.outer_rows[k][0] + place.outer[1] * job.outer_rows[k][1] +
                                                     place.outer[2] * job.outer_rows[k][2]);
#pragma unroll
            for (unsigned p = 0; p < S::offsets; ++p)
                asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
                                 target + p * static_cast<unsigned>(S::region * sizeof(T))),
                             "l"(&job.maps[k][(first + p) % S::offsets]), "r"(x), "r"(static_cast<int>((first + p) / S::offsets) - later), "r"(arrival.barrier)
                             : "memory");
        } else if (job.deep) {
            asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"(target),
                         "l"(&job.maps[k][0]), "r"(x), "r"(row - later), "r"(place.outer[2]), "r"(place.outer[1]), "r"(place.outer[0]), "r"(arrival.barrier)
                         : "memory");
        } else {
            asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(target),
                         "l"(&job.maps[k][0]), "r"(x), "r"(row - later), "r"(place.outer[2]), "r"(arrival.barrier)
                         : "memory");
        }
    }
}

}  // namespace trifold::cuda
