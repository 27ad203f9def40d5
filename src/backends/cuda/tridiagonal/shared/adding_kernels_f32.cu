// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/shared/launch.cuh"

namespace trifold::cuda {

template <>
SharedKernels<float> adding_shared_kernels<float>() {
    constexpr bool open = false, adds = true;
    static constexpr SharedKernel<float> kernels[] = {
        ring_bands_kernel<float, 32, 512, 1024, adds>(),
        ring_kernel<float, 32, 512, 1, 256, open, adds>(),
        columns_kernel<float, 32, 512, 1, 256, open, adds>(),
        columns_kernel<float, 64, 512, 1, 1024, open, adds>(),
        rows_kernel<float, 33, 3, false, false, 128, 2, adds>(),
        rows_kernel<float, 25, 3, false, false, 128, 3, adds>(),
        rows_kernel<float, 33, 3, true, false, 256, 1, adds>(),
    };
    return {kernels, sizeof kernels / sizeof kernels[0]};
}

}  // namespace trifold::cuda
