// SPDX-License-Identifier: BSD-3-Clause
// Systems of so few rows that a thread has one in registers (few_rows.cuh).
#pragma once

#include "backends/cuda/tridiagonal/batch.hpp"

namespace trifold::cuda {

/// Whether solve_few_rows is for this system: at most 16 rows, any layout, neither periodic, accumulating nor ragged.
bool takes_few_rows(const tridiagonal::System& system);

/// Enqueues, like solve_batch, with pivots, so that nothing is left to others. It needs no scratch.
void solve_few_rows(const tridiagonal::System& system, const BatchLaunch& launch);

}  // namespace trifold::cuda
