// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/block/tensor_map.hpp"

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace trifold::cuda {
namespace {

using Encode = decltype(&cuTensorMapEncodeTiled);

Encode encoder() {
    static const Encode found = [] {
        void* function = nullptr;
        cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
        const bool good = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &result) == cudaSuccess;
        return good && result == cudaDriverEntryPointSuccess ? reinterpret_cast<Encode>(function) : nullptr;
    }();
    return found;
}

}  // namespace

bool tensor_maps_exist() { return encoder() != nullptr; }

bool tensors_repeat() {
    static const bool known = [] {
        alignas(64) unsigned char map[sizeof(CUtensorMap)];
        const cuuint64_t extents[3] = {64, 64, 64}, bytes[2] = {256, 0};
        const cuuint32_t box[3] = {32, 8, 1}, one[3] = {1, 1, 1};
        constexpr std::uintptr_t somewhere = 1 << 20;  // nothing is read of it
        return encoder() && encoder()(reinterpret_cast<CUtensorMap*>(map), CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 3, reinterpret_cast<void*>(somewhere), extents, bytes, box, one, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                      CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
    }();
    return known;
}

// The GPU waits while the host encodes maps: those of earlier solves are remembered.
bool encode(TensorMap& map, const MapShape& shape) {
    struct Known {
        MapShape shape;
        TensorMap map;
    };
    static thread_local Known known[64];
    const std::uint64_t mixed = (reinterpret_cast<std::uintptr_t>(shape.data) / 4 + 31 * shape.box[0] + 7 * shape.box[1]) * 0x9e3779b97f4a7c15ull;
    Known& place = known[mixed >> 58];
    if (!(place.shape == shape)) {
        const cuuint32_t one[5] = {1, 1, 1, 1, 1};
        place.shape = {};
        if (!encoder() || encoder()(reinterpret_cast<CUtensorMap*>(&place.map), shape.wide ? CU_TENSOR_MAP_DATA_TYPE_FLOAT64 : CU_TENSOR_MAP_DATA_TYPE_FLOAT32, shape.dimensions, shape.data,
                      shape.extents, shape.bytes, shape.box, one, CU_TENSOR_MAP_INTERLEAVE_NONE, shape.swizzled ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE, shape.lines ? CU_TENSOR_MAP_L2_PROMOTION_L2_128B : CU_TENSOR_MAP_L2_PROMOTION_NONE,
                      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
            return false;
        place.shape = shape;
    }
    map = place.map;
    return true;
}

}  // namespace trifold::cuda
