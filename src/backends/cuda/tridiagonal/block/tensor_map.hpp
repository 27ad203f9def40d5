// SPDX-License-Identifier: BSD-3-Clause
// Arrays as tensors for the copy engine.
#pragma once

#include <cstdint>

namespace trifold::cuda {

/// A CUtensorMap, whose header belongs to the driver.
struct alignas(64) TensorMap {
    unsigned long long words[16];
};

/// All that a map is made of.
struct MapShape {
    void* data = nullptr;
    std::uint64_t extents[5] = {}, bytes[4] = {};
    std::uint32_t box[5] = {}, dimensions = 0;
    bool wide = false;   ///< elements of 8 bytes, else 4
    bool lines = true;   ///< the second-level cache is asked for whole lines

    bool operator==(const MapShape&) const = default;
};

/// Whether the driver knows tensors.
bool tensor_maps_exist();

/// False where the copy engine cannot take it.
bool encode(TensorMap& map, const MapShape& shape);

}  // namespace trifold::cuda
