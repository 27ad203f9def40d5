// SPDX-License-Identifier: BSD-3-Clause
// Systems of so few rows that a thread has one in registers (few_rows.cuh).
#pragma once

#include "backends/cuda/tridiagonal/batch.hpp"
#include "backends/cuda/tridiagonal/pivoted.hpp"

namespace trifold::cuda {

/// Whether solve_few_rows can solve this: at most 16 rows, any layout, neither periodic nor ragged.
bool fits_few_rows(const tridiagonal::System& system);

/// Whether that is the fastest way to.
bool takes_few_rows(const tridiagonal::System& system);

/// Enqueues, like solve_batch, with pivots, so that nothing is left to others. It needs no scratch.
void solve_few_rows(const tridiagonal::System& system, const BatchLaunch& launch);

/// As solve_pivoted, of what fits_few_rows.
void solve_few_marked(const tridiagonal::System& system, const BatchLaunch& launch, const Marks& marks, const unsigned long long* marked);

}  // namespace trifold::cuda
