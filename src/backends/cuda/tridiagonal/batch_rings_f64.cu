// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/block/columns_launch.cuh"

namespace trifold::cuda {

template <>
void launch_rings<double>(ColumnJob<double>& job, cudaStream_t stream) {
    if (job.cut.lane_columns == 32) enqueue_rings<double, 32, 1>(job, stream);
    else enqueue_rings<double, 16, 1>(job, stream);
}

}  // namespace trifold::cuda
