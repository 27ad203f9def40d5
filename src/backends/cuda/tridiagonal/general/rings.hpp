// SPDX-License-Identifier: BSD-3-Clause
// Periodic systems, one or many, any layout; x may be rhs, or added to.
#pragma once

#include "backends/cuda/tridiagonal/batch.hpp"

namespace trifold::cuda {

/// nullptr, or why not, as a phrase that follows "because".
const char* rings_refuse(const tridiagonal::System& system);

std::size_t rings_scratch(const tridiagonal::System& system);
std::size_t rings_least_scratch(const tridiagonal::System& system);

/// Enqueues, and resets outcome; the status was set by the caller. x of a failed ring is not written, so that in place its right-hand side stays.
void solve_rings(const tridiagonal::System& system, const BatchLaunch& launch);

}  // namespace trifold::cuda
