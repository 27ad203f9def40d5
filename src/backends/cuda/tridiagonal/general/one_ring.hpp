// SPDX-License-Identifier: BSD-3-Clause
// One periodic system in one launch.
#pragma once

#include "backends/cuda/tridiagonal/batch.hpp"

namespace trifold::cuda {

/// Whether solve_one_ring takes it: one ring of 2048 … 32 768 rows that is not added to x, clusters of 16 blocks.
bool one_ring_fits(const tridiagonal::System& ring);

/// Bytes of scratch it wants; 0 where it does not take it.
std::size_t one_ring_scratch(const tridiagonal::System& ring);

/// All of it, reset of outcome and status included.
void solve_one_ring(const tridiagonal::System& ring, const BatchLaunch& launch);

}  // namespace trifold::cuda
