// SPDX-License-Identifier: BSD-3-Clause
// Long systems, one or several, pivoted, in two passes over their rows (docs/algorithms/two_pass.md).
#pragma once

#include "backends/cuda/tridiagonal/batch.hpp"

namespace trifold::cuda {

/// nullptr, or why not, as a phrase that follows "because": too few rows to be cut.
const char* two_pass_refuses(const tridiagonal::System& system);

std::size_t two_pass_scratch(const tridiagonal::System& system);

/// Enqueues, like solve_batch. Systems whose residual is not as small as that of LU with partial pivoting, or in which a column
/// has no pivot, are left to solve_pivoted in the same stream.
/// `left`, where given: only systems k with left[k] = 2, what solve_windows could not show to be good.
void solve_two_pass(const tridiagonal::System& system, const BatchLaunch& launch, const unsigned* left = nullptr);

}  // namespace trifold::cuda
