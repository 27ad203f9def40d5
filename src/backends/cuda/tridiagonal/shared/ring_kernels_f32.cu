// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/shared/launch.cuh"

namespace trifold::cuda {

template <>
SharedKernels<float> shared_ring_kernels<float>() {
    static constexpr SharedKernel<float> kernels[] = {
        ring_kernel<float, 32, 512, 1, 256, true>(),
        columns_kernel<float, 32, 512, 1, 256, true>(),
        columns_kernel<float, 64, 512, 1, 1024, true>(),
    };
    return {kernels, sizeof kernels / sizeof kernels[0]};
}

}  // namespace trifold::cuda
