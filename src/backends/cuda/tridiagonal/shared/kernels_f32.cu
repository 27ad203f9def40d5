// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/shared/launch.cuh"

namespace trifold::cuda {

template <>
SharedKernels<float> shared_kernels<float>() {
    static constexpr SharedKernel<float> kernels[] = {
        ring_bands_kernel<float, 32, 512, 1024>(),
        gathered_kernel<float, 64, 256>(),
        bands_kernel<float, 64, 512>(),
        ring_kernel<float, 32, 512, 1, 256>(),
        columns_kernel<float, 32, 512, 1, 256>(),
        columns_kernel<float, 64, 512, 1, 1024>(),
        rows_kernel<float, 33, 3, false, false, 128, 2>(),
        rows_kernel<float, 25, 3, false, false, 128, 3>(),
        rows_kernel<float, 33, 3, true, false, 256, 1>(),
    };
    return {kernels, sizeof kernels / sizeof kernels[0]};
}

}  // namespace trifold::cuda
