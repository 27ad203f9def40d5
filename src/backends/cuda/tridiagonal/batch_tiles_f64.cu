// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/block/launch.cuh"

namespace trifold::cuda {

template <>
TileKernels<double> tile_kernels<double>() {
    static constexpr TileKernel<double> kernels[] = {
        tile_kernel<double, 8, 8, false, 256, 3>(),
        tile_kernel<double, 8, 8, true, 256, 3>(),
    };
    return {kernels, sizeof kernels / sizeof kernels[0]};
}

}  // namespace trifold::cuda
