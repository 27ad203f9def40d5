// SPDX-License-Identifier: BSD-3-Clause
// LU with partial pivoting of many systems side by side (pivoted_columns.cuh).
#pragma once

#include "backends/cuda/tridiagonal/pivoted.hpp"

namespace trifold::cuda {

/// Of marked systems, from how many on that kernel has them all; 0: it has none. 1: whatever is marked.
unsigned long long least_marked_by_columns(const tridiagonal::System& system);

/// Enqueues, like solve_pivoted; without marks all systems where `marked` is null or *marked is not 0. `slots` as in PivotedJob. False: these systems are not for it, and nothing was enqueued.
bool solve_pivoted_columns(const tridiagonal::System& system, const BatchLaunch& launch, const Marks& marks, const unsigned long long* marked, std::int64_t slots);

}  // namespace trifold::cuda
