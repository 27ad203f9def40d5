// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/block/columns_launch.cuh"

namespace trifold::cuda {

template <>
void launch_columns<double>(ColumnJob<double>& job, cudaStream_t stream) {
    if (job.cut.lane_columns == 32) enqueue_columns<double, 16, 32, 1>(job, stream);
    else if (job.cut.chunk_rows == 16) enqueue_columns<double, 16, 16, 1>(job, stream);
    else enqueue_columns<double, 12, 16, 1>(job, stream);
}

}  // namespace trifold::cuda
