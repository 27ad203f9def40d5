// SPDX-License-Identifier: BSD-3-Clause
// Where a tile's elements are.
#pragma once

#include <cstdint>

#include "backends/cuda/tridiagonal/block/tile_job.hpp"

namespace trifold::cuda {

/// The part of the batch that a warp or a block holds.
struct TilePlace {
    unsigned outer[3];
    std::int64_t column;   ///< first column
    int columns;           ///< that exist from there
    int first_row, rows;
};

template <class T>
__device__ __forceinline__ T* corner(const TileJob<T>& job, const TileOperand<T>& operand, const TilePlace& place) {
    T* at = operand.data + place.column * operand.column_stride + place.first_row * operand.row_stride;
    if (!job.one_run)
        at += place.outer[0] * operand.outer_stride[0] + place.outer[1] * operand.outer_stride[1] + place.outer[2] * operand.outer_stride[2];
    return at;
}

}  // namespace trifold::cuda
