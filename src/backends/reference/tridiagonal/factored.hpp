// SPDX-License-Identifier: BSD-3-Clause
// Factorisations that are kept: one LU (lu.hpp) per system, or one folded band (ring_lu.hpp) per ring, side by side.
#pragma once

#include "families/tridiagonal/ops.hpp"

namespace trifold::tridiagonal::reference {

std::size_t factor_bytes(const System& system);
std::size_t factor_scratch(const System& system, int threads);
void factor_all(const System& batch, const Launch& launch, void* factors, Outcome& outcome);
void solve_factored(const System& batch, bool periodic, std::int64_t factored, const void* factors, const Launch& launch,
                    Outcome& outcome);

}  // namespace trifold::tridiagonal::reference
