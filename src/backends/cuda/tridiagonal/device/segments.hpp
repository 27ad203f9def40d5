// SPDX-License-Identifier: BSD-3-Clause
// Many long columns side by side, cut into segments, in two passes over their rows (docs/algorithms/gpu_long_batches.md).
#pragma once

#include "backends/cuda/tridiagonal/batch.hpp"

namespace trifold::cuda {

/// Whether solve_segments is for this system: rows of at least 12 columns side by side, more of them than stay on chip.
bool takes_segments(const tridiagonal::System& system);

std::size_t segments_scratch(const tridiagonal::System& system);

/// Enqueues, like solve_batch. Columns that are not dominant are left to solve_pivoted, or where it has no room on chip for many of them to solve_windows, in the same stream. wanted: null, or a word in the
/// device's memory that is zero where nothing is to be done; windows are then not tried.
void solve_segments(const tridiagonal::System& system, const BatchLaunch& launch, unsigned* wanted = nullptr);

}  // namespace trifold::cuda
