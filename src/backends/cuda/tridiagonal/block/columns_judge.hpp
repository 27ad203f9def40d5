// SPDX-License-Identifier: BSD-3-Clause
// Which kernel a batch of columns side by side begins with: a look at some rows of some columns, before all else. What it says depends on the matrix alone, so that bits repeat.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/tridiagonal/block/tile_job.hpp"

namespace trifold::cuda {

/// Columns that are looked at, 16 rows of each at so many places.
inline constexpr int judged_columns = 32, judged_places = 8, judged_rows = 16;

/// Enqueues. Resets the outcome of job.opening; then, unless most columns seem to be dominant, sets *beside and all marks, and *undecided to the number of systems, or to twice as many where elimination without
/// exchanges seems to be hopeless.
template <class T>
void judge_columns(const TileJob<T>& job, std::int64_t systems, unsigned* beside, unsigned long long* undecided, cudaStream_t stream);

}  // namespace trifold::cuda
