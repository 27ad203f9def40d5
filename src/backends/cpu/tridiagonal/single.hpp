// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include "families/tridiagonal/ops.hpp"

namespace trifold::cpu {

/// Bytes of scratch for solve_single.
std::size_t single_bytes(const tridiagonal::System& system);

/// One system of any length (levels == 0, views and scalars, neither periodic nor accumulating), sequentially, by
/// Algorithm::thomas, lu, or automatic (thomas where the sweep shows it to be backward stable, else lu). x is stored only where
/// the outcome is ok; rhs is intact otherwise.
void solve_single(const tridiagonal::System& system, tridiagonal::Algorithm algorithm, const tridiagonal::Launch& launch,
                  Outcome& outcome);

}  // namespace trifold::cpu
