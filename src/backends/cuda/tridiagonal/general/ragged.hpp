// SPDX-License-Identifier: BSD-3-Clause
// Ragged batches: systems of different lengths, one after the other in one-dimensional arrays.
#pragma once

#include "backends/cuda/tridiagonal/batch.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::cuda {

/// nullptr, or why not, as a phrase that follows "because".
const char* ragged_refuses(const tridiagonal::System& system, tridiagonal::Algorithm algorithm);

/// Offsets (families/tridiagonal/offsets.hpp) included. System::offsets, in the host's memory, is read. Least: what does in any case, as in path.hpp.
std::size_t ragged_scratch(const tridiagonal::System& system, tridiagonal::Algorithm algorithm);
std::size_t ragged_least_scratch(const tridiagonal::System& system, tridiagonal::Algorithm algorithm);

/// Enqueues, and resets outcome and status. System::offsets, in the host's memory, is read before it returns, and those at the beginning of the scratch by kernels: they must be the same. x of a failed
/// system is not written, but for those that get launches of their own, in place: there rhs is as those leave it (path.hpp).
bool solve_ragged(const tridiagonal::System& system, tridiagonal::Algorithm algorithm, const BatchLaunch& launch);

/// As check_finite (finite.hpp).
void check_finite_ragged(const tridiagonal::System& system, const BatchLaunch& launch);

}  // namespace trifold::cuda
