// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/shared/launch.cuh"

namespace trifold::cuda {

template <>
SharedKernels<double> adding_shared_kernels<double>() {
    constexpr bool open = false, adds = true;
    static constexpr SharedKernel<double> kernels[] = {
        columns_kernel<double, 16, 512, 1, 256, open, adds>(),
        columns_kernel<double, 32, 512, 1, 1024, open, adds>(),
        rows_kernel<double, 17, 3, false, false, 128, 2, adds>(),
        rows_kernel<double, 10, 3, false, false, 128, 3, adds>(),
        rows_kernel<double, 13, 3, false, true, 128, 3, adds>(),
        rows_kernel<double, 17, 3, true, false, 256, 1, adds>(),
    };
    return {kernels, sizeof kernels / sizeof kernels[0]};
}

}  // namespace trifold::cuda
