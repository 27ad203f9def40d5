// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/shared/march_columns.cuh"
#include "backends/cuda/tridiagonal/shared/march_launch.cuh"
#include "backends/cuda/tridiagonal/shared/march_rows.cuh"

namespace trifold::cuda {

template <>
void launch_march<float>(const ColumnJob<float>& job, const March<float>& march, MarchPass pass, cudaStream_t stream) {
    if (march.along_rows) enqueue_march<MarchOneByOne<float, 2>>(job, march, pass, stream);
    else if (job.cut.shifted) enqueue_march<MarchSideBySide<float, 2, true>>(job, march, pass, stream);
    else enqueue_march<MarchSideBySide<float, 2, false>>(job, march, pass, stream);
}

}  // namespace trifold::cuda
