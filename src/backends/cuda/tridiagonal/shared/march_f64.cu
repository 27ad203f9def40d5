// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/shared/march.cuh"

namespace trifold::cuda {

template <>
void launch_march<double>(ColumnJob<double>& job, const March<double>& march, cudaStream_t stream) {
    if (job.cut.shifted) enqueue_march<double, 1, true>(job, march, stream);
    else enqueue_march<double, 1, false>(job, march, stream);
}

}  // namespace trifold::cuda
