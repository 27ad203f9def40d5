// SPDX-License-Identifier: BSD-3-Clause
// Periodic, accumulating, ragged systems, alone or many, from arrays, numbers or generators: what the kernels for plain ones do not take. Batches whose x is added to go on to these (batch_added.hpp).
#pragma once

#include "families/tridiagonal/ops.hpp"

namespace trifold::cpu {

/// nullptr, or why not, as Ops::refuses.
const char* general_refuses(const tridiagonal::System& system);
std::size_t general_bytes(const tridiagonal::System& system, int threads);
void solve_general(const tridiagonal::System& system, const tridiagonal::Launch& launch, Outcome& outcome);

}  // namespace trifold::cpu
