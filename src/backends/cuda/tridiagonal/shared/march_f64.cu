// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/shared/march_columns.cuh"
#include "backends/cuda/tridiagonal/shared/march_launch.cuh"
#include "backends/cuda/tridiagonal/shared/march_rows.cuh"

namespace trifold::cuda {

template <>
void launch_march<double>(const ColumnJob<double>& job, const March<double>& march, MarchPass pass, cudaStream_t stream) {
    if (march.along_rows) enqueue_march<MarchOneByOne<double, 1>>(job, march, pass, stream);
    else if (job.cut.shifted) enqueue_march<MarchSideBySide<double, 1, true>>(job, march, pass, stream);
    else enqueue_march<MarchSideBySide<double, 1, false>>(job, march, pass, stream);
}

}  // namespace trifold::cuda
