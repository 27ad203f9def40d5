// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/block/columns_launch.cuh"

namespace trifold::cuda {

template <>
void launch_adding_columns<float>(ColumnJob<float>& job, cudaStream_t stream) {
    if (job.cut.share == 2) enqueue_columns<float, column_chunk, 32, 2, true>(job, stream);
    else enqueue_columns<float, column_chunk, 32, 1, true>(job, stream);
}

}  // namespace trifold::cuda
