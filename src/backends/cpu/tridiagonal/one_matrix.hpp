// SPDX-License-Identifier: BSD-3-Clause
// Batches on the cpu whose systems have one matrix: that is eliminated once, in scratch, and two words per row move instead of being divided anew in every lane.
#pragma once

#include <cstddef>

#include "families/tridiagonal/ops.hpp"

namespace trifold::cpu {

/// Whether solve_one_matrix is for this system (any kind; those that are periodic, ragged or generated are not).
bool takes_one_matrix(const tridiagonal::System& system, tridiagonal::Algorithm algorithm);

std::size_t one_matrix_bytes(const tridiagonal::System& system, tridiagonal::Algorithm algorithm, int threads);

/// By kept factors (factored.hpp), whose test is the batch kernels' own. A matrix that does not pass is left to solve_batch, or solve_batch_added.
void solve_one_matrix(const tridiagonal::System& system, tridiagonal::Algorithm algorithm, const tridiagonal::Launch& launch, Outcome& outcome);

}  // namespace trifold::cpu
