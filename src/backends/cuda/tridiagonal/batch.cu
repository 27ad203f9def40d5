// SPDX-License-Identifier: BSD-3-Clause
// Batches: every system by the general pivoted path.
#include "backends/cuda/tridiagonal/batch.hpp"

#include "backends/cuda/tridiagonal/pivoted.hpp"

namespace trifold::cuda {

const char* batch_refuses(const tridiagonal::System&) { return "batches go the general pivoted way"; }

std::size_t batch_scratch(const tridiagonal::System& system) { return pivoted_scratch(system); }

void solve_batch(const tridiagonal::System& system, const BatchLaunch& launch) { solve_pivoted(system, launch); }

}  // namespace trifold::cuda
