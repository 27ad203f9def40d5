// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/shared/launch.cuh"

namespace trifold::cuda {

template <>
SharedKernels<double> shared_kernels<double>() {
    static constexpr SharedKernel<double> kernels[] = {
        gathered_kernel<double, 32, 256>(),
        bands_kernel<double, 32, 512>(),
        columns_kernel<double, 16, 512, 1, 256>(),
        columns_kernel<double, 32, 512, 1, 1024>(),
        rows_kernel<double, 17, 3, false, false, 128, 2>(),
        rows_kernel<double, 10, 3, false, false, 128, 3>(),
        rows_kernel<double, 13, 3, false, true, 128, 3>(),
        rows_kernel<double, 17, 3, true, false, 256, 1>(),
    };
    return {kernels, sizeof kernels / sizeof kernels[0]};
}

}  // namespace trifold::cuda
