// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/block/rows_launch.cuh"

namespace trifold::cuda {

template <>
TileKernels<double> adding_rows_kernels<double>() {
    static constexpr TileKernel<double> kernels[] = {
        adding_rows_kernel<double, 25, false, 128, 2>(),
        adding_rows_kernel<double, 17, false, 128, 3>(),
        adding_rows_kernel<double, 25, true, 128, 2>(),
        adding_rows_kernel<double, 17, true, 192, 2>(),
    };
    return {kernels, sizeof kernels / sizeof kernels[0]};
}

}  // namespace trifold::cuda
