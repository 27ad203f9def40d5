// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/shared/march.cuh"

namespace trifold::cuda {

template <>
void launch_march<float>(ColumnJob<float>& job, const March<float>& march, cudaStream_t stream) {
    if (job.cut.shifted) enqueue_march<float, 2, true>(job, march, stream);
    else enqueue_march<float, 2, false>(job, march, stream);
}

}  // namespace trifold::cuda
