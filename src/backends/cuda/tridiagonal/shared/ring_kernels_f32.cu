// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/shared/launch.cuh"

namespace trifold::cuda {

template <>
SharedKernels<float> shared_ring_kernels<float>() {
    static constexpr SharedKernel<float> kernels[] = {
        ring_kernel<float, 32, 512, 1, 256, true>(),
        columns_kernel<float, 32, 512, 1, 256, true>(),
        columns_kernel<float, 64, 512, 1, 1024, true>(),
        ring_rows_kernel<float, 33, 3, false, 128, 2>(),
        ring_rows_kernel<float, 25, 3, false, 128, 2>(),
        ring_rows_kernel<float, 17, 3, false, 128, 2>(),
        ring_rows_kernel<float, 66, 3, true, 224, 1>(),
    };
    return {kernels, sizeof kernels / sizeof kernels[0]};
}

}  // namespace trifold::cuda
