// SPDX-License-Identifier: BSD-3-Clause
// Matrices that are eliminated once and kept, for many right-hand sides: the cpu's `factor` and `solve_factored` (families/tridiagonal/ops.hpp).
//
//   one matrix     numbers per row, for any number of right-hand sides; a long one also in stretches (factored_long.hpp)
//   a batch        lines of lanes (group_tiles-inl.h), systems in the order of their numbers
//   a few long     each in stretches
//   a batch in memory  nothing (factor_bytes is 0): `factor` looks at it with factors == nullptr, and who asked keeps the matrix and solves anew
//
// Nothing is pivoted. Where a matrix does not pass the test of group_tiles-inl.h it is kept as it is, and eliminated with pivots at every solve:
// that reads three words per row, where kept factors with pivots would be four.
#pragma once

#include "families/tridiagonal/ops.hpp"

namespace trifold::cpu {

std::size_t factor_bytes(const tridiagonal::System& system);
std::size_t factor_scratch(const tridiagonal::System& system, int threads);
void factor(const tridiagonal::System& system, const tridiagonal::Launch& launch, void* factors, Outcome& outcome);
void solve_factored(const tridiagonal::System& system, bool periodic, std::int64_t factored, const void* factors, const tridiagonal::Launch& launch,
                    Outcome& outcome);

}  // namespace trifold::cpu
