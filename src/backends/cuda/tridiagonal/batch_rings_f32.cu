// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/block/columns_launch.cuh"

namespace trifold::cuda {

template <>
void launch_rings<float>(ColumnJob<float>& job, cudaStream_t stream) {
    if (job.cut.share == 2) enqueue_rings<float, 32, 2>(job, stream);
    else enqueue_rings<float, 32, 1>(job, stream);
}

}  // namespace trifold::cuda
