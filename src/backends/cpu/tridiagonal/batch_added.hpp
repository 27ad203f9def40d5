// SPDX-License-Identifier: BSD-3-Clause
// Batches whose x is added to, by the kernels of batches: some blocks at a time into scratch that stays in a core's caches, and from there.
#pragma once

#include <cstddef>

#include "families/tridiagonal/ops.hpp"

namespace trifold::cpu {

/// Systems of one length, open, without generators; not so long that a block leaves the caches.
bool batch_adds(const tridiagonal::System& system);

std::size_t batch_added_bytes(const tridiagonal::System& system, int threads);

/// As solve_batch by Algorithm::automatic, for what batch_adds takes; a failed system's x stays as it was. x may be rhs. Words: 4 read, and x read and written.
void solve_batch_added(const tridiagonal::System& system, const tridiagonal::Launch& launch, Outcome& outcome);

}  // namespace trifold::cpu
