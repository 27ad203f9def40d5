// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/block/columns_launch.cuh"

namespace trifold::cuda {

template <>
void launch_adding_columns<double>(ColumnJob<double>& job, cudaStream_t stream) {
    if (job.cut.lane_columns == 32) enqueue_columns<double, column_chunk, 32, 1, true>(job, stream);
    else enqueue_columns<double, column_chunk, 16, 1, true>(job, stream);
}

}  // namespace trifold::cuda
