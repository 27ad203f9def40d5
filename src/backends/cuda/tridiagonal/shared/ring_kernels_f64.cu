// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/shared/launch.cuh"

namespace trifold::cuda {

template <>
SharedKernels<double> shared_ring_kernels<double>() {
    static constexpr SharedKernel<double> kernels[] = {
        columns_kernel<double, 16, 512, 1, 256, true>(),
        columns_kernel<double, 32, 512, 1, 1024, true>(),
        ring_rows_kernel<double, 17, 3, false, 128, 2>(),
        ring_rows_kernel<double, 10, 3, false, 128, 2>(),
        ring_rows_kernel<double, 33, 3, true, 224, 1>(),
    };
    return {kernels, sizeof kernels / sizeof kernels[0]};
}

}  // namespace trifold::cuda
