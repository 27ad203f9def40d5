// SPDX-License-Identifier: BSD-3-Clause
// Shared memory beyond the 48 KiB that every kernel may take: asked for by kernel and device.
#pragma once

#include <cuda_runtime_api.h>

namespace trifold::cuda {

/// What a block may take at most from compute capability 9.0 on, its static part included.
inline constexpr int most_shared_bytes = 227 * 1024;

/// Blocks of `kernel` may take so many bytes of dynamic shared memory, and what the multiprocessor has of it is not the first level cache's.
/// A refusal is not told: the launch that wanted it is refused then, and is (launch_error.hpp).
template <class... Arguments>
void allow_shared_memory(void (*kernel)(Arguments...), int bytes = most_shared_bytes) {
    const auto* const function = reinterpret_cast<const void*>(kernel);
    cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    cudaFuncSetAttribute(function, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
}

}  // namespace trifold::cuda
