// SPDX-License-Identifier: BSD-3-Clause
// x += A^-1 rhs for systems that are no rings: by the kernels that solve, where they can (batch.hpp); else solved into scratch by the path that they would take, then added.
#pragma once

#include "backends/cuda/tridiagonal/pivoted.hpp"

namespace trifold::cuda {

std::size_t added_scratch(const tridiagonal::System& system);
std::size_t added_least_scratch(const tridiagonal::System& system);

/// Enqueues, and resets outcome and status. x of a failed system stays as it was. Words per row: those of the solve and one more, or three.
void solve_added(const tridiagonal::System& system, const BatchLaunch& launch);

/// The same system with x in scratch, where nothing is added, and the scratch's bytes.
tridiagonal::System solved_apart(const tridiagonal::System& system, void* scratch);
std::size_t apart_bytes(const tridiagonal::System& system);

/// Enqueues, where *marked, in the device's memory, is not 0: x of marked systems gets what solved_apart's have, unless their status, which must be there, says that they failed.
void add_marked(const tridiagonal::System& system, const tridiagonal::System& apart, const BatchLaunch& launch, const Marks& marks, const unsigned long long* marked);

}  // namespace trifold::cuda
