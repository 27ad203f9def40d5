// SPDX-License-Identifier: BSD-3-Clause
// x += A^-1 rhs for systems that are no rings: solved into scratch by the path that they would take, then added.
#pragma once

#include "backends/cuda/tridiagonal/batch.hpp"

namespace trifold::cuda {

std::size_t added_scratch(const tridiagonal::System& system);
std::size_t added_least_scratch(const tridiagonal::System& system);

/// Enqueues, and resets outcome and status. x of a failed system stays as it was. Words per row: those of the solve and three more.
void solve_added(const tridiagonal::System& system, const BatchLaunch& launch);

}  // namespace trifold::cuda
