// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/block/columns_launch.cuh"

namespace trifold::cuda {

template <>
void launch_columns_of_lines<float>(ColumnJob<float>& job, cudaStream_t stream) {
    enqueue_columns_of_lines<float, 2>(job, stream);
}

}  // namespace trifold::cuda
