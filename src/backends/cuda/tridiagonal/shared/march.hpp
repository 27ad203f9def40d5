// SPDX-License-Identifier: BSD-3-Clause
// Long systems with one matrix whose unknowns feel each other over some hundred rows at most (docs/algorithms/gpu_long_batches.md).
#pragma once

#include "backends/cuda/tridiagonal/batch.hpp"

namespace trifold::cuda {

/// Whether solve_march is for this system: systems with one matrix, too long for those kernels that hold them, or many columns that these hold less well.
bool takes_march(const tridiagonal::System& system);

std::size_t march_scratch(const tridiagonal::System& system);

/// Enqueues, like solve_batch. Where unknowns feel each other farther, or rows are not dominant, all are left to what would solve them otherwise, in the same stream.
void solve_march(const tridiagonal::System& system, const BatchLaunch& launch);

}  // namespace trifold::cuda
