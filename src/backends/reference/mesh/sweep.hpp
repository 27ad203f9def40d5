// SPDX-License-Identifier: BSD-3-Clause
// What a sweep means: trifold/sweep.hpp, word by word, a point and a line at a time, every line by LU with partial pivoting.
#pragma once

#include "families/tridiagonal/ops.hpp"
#include "problems/mesh/checked.hpp"

namespace trifold::mesh::reference {

std::size_t sweep_bytes(const Checked& checked, int threads);
void sweep(const Checked& checked, std::int64_t first_step, std::int64_t steps, const tridiagonal::Launch& launch, SweepOutcome& outcome);

}  // namespace trifold::mesh::reference
