// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/block/rows_launch.cuh"

namespace trifold::cuda {

template <>
TileKernels<float> adding_rows_kernels<float>() {
    static constexpr TileKernel<float> kernels[] = {
        adding_rows_kernel<float, 49, false, 128, 2>(),
        adding_rows_kernel<float, 43, false, 128, 2>(),
        adding_rows_kernel<float, 33, false, 128, 3>(),
        adding_rows_kernel<float, 21, false, 128, 4>(),
        adding_rows_kernel<float, 33, true, 192, 2>(),
    };
    return {kernels, sizeof kernels / sizeof kernels[0]};
}

}  // namespace trifold::cuda
