// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/block/columns_launch.cuh"

namespace trifold::cuda {

template <>
void launch_segments<double>(ColumnJob<double>& job, ColumnPass pass, cudaStream_t stream) {
    if (pass == ColumnPass::windows) enqueue_segments<double, 1, ColumnPass::windows>(job, stream);
    else if (pass == ColumnPass::reduce) enqueue_segments<double, 1, ColumnPass::reduce>(job, stream);
    else enqueue_segments<double, 1, ColumnPass::finish>(job, stream);
}

}  // namespace trifold::cuda
