// SPDX-License-Identifier: BSD-3-Clause
// Batches whose arrays lie unlike each other: rhs with rows side by side, x with systems side by side, bands of one system for a whole plane. Kernels move pieces that
// lie together in all arrays; of an array where they do not a sector is moved for every element. Such arrays are copied into scratch, as the others lie, and x from there.
#pragma once

#include "backends/cuda/tridiagonal/batch.hpp"

namespace trifold::cuda {

/// Whether copies cost less than what they save. The system is neither periodic nor added to.
bool takes_alike(const tridiagonal::System& system);

std::size_t alike_scratch(const tridiagonal::System& system);

/// Enqueues, and resets outcome and status. x of a failed system stays as it was. Words per row: those of the solve, and two for every array that is copied (one where it repeats).
void solve_alike(const tridiagonal::System& system, const BatchLaunch& launch);

}  // namespace trifold::cuda
