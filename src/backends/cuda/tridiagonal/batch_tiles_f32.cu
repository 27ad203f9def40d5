// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/block/launch.cuh"

namespace trifold::cuda {

template <>
TileKernels<float> tile_kernels<float>() {
    static constexpr TileKernel<float> kernels[] = {
        tile_kernel<float, 16, 8, false, 256, 3>(),
        tile_kernel<float, 16, 8, true, 256, 3>(),
    };
    return {kernels, sizeof kernels / sizeof kernels[0]};
}

}  // namespace trifold::cuda
