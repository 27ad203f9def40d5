// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/shared/march_columns.cuh"
#include "backends/cuda/tridiagonal/shared/march_rows.cuh"

namespace trifold::cuda {

template <>
void launch_march<float>(ColumnJob<float>& job, const March<float>& march, cudaStream_t stream) {
    if (march.along_rows) enqueue_march<MarchOneByOne<float, 2>>(job, march, stream);
    else if (job.cut.shifted) enqueue_march<MarchSideBySide<float, 2, true>>(job, march, stream);
    else enqueue_march<MarchSideBySide<float, 2, false>>(job, march, stream);
}

}  // namespace trifold::cuda
