// SPDX-License-Identifier: BSD-3-Clause
// Arrays as tensors for the copy engine.
#pragma once

#include <cstdint>

#include "backends/cuda/tridiagonal/block/tensor.hpp"

namespace trifold::cuda {

/// All that a map is made of.
struct MapShape {
    void* data = nullptr;
    std::uint64_t extents[5] = {}, bytes[4] = {};
    std::uint32_t box[5] = {}, dimensions = 0;
    bool wide = false;   ///< elements of 8 bytes, else 4
    bool lines = true;   ///< the second-level cache is asked for whole lines
    bool swizzled = false;  ///< in shared memory 16 bytes of every 128 change places, by which 128 of 1024 they are of: number i of them is at i ^ that

    bool operator==(const MapShape&) const = default;
};

/// Whether the driver knows tensors.
bool tensor_maps_exist();

/// Whether a tensor may be the same all along a dimension, by a stride of 0: no document says so.
bool tensors_repeat();

/// False where the copy engine cannot take it.
bool encode(TensorMap& map, const MapShape& shape);

}  // namespace trifold::cuda
