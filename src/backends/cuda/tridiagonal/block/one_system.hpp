// SPDX-License-Identifier: BSD-3-Clause
// One system that a single block holds, in as little time as a launch leaves.
#pragma once

#include "backends/cuda/tridiagonal/batch.hpp"

namespace trifold::cuda {

/// Whether solve_one_system takes it: one system of 512 … 102 400 rows (8192 where clusters have eight blocks at most), arrays whose rows lie side by side, compute
/// capability 9.0.
bool one_system_fits(const tridiagonal::System& system);

/// Bytes of scratch it wants, for arrays of any strides, which may be copied before they are solved; 0 where it never takes them.
std::size_t one_system_scratch(const tridiagonal::System& system);

/// All of it in one launch, as solve_in_one_launch, whose scratch it takes.
void solve_one_system(const tridiagonal::System& system, const BatchLaunch& launch);

}  // namespace trifold::cuda
