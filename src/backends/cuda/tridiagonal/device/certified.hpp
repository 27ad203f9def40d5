// SPDX-License-Identifier: BSD-3-Clause
// One long system in one pass, with a bound on its error, or several side by side (docs/algorithms/gpu_single.md).
#pragma once

#include "backends/cuda/tridiagonal/batch.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::cuda {

/// nullptr, or why not, as a phrase that follows "because".
const char* certified_refuses(const tridiagonal::System& system);

/// Several systems that lie one after the other without gaps, from 16-byte boundaries: solve_certified takes them as one. They end as `exact`, or
/// solve_windows takes all of them.
bool several_in_halos(const tridiagonal::System& system);

/// Enqueues windows with halos alone, which reset the outcome. Where they give up, its word `handed_over` is not zero any more, and rhs is what it was, in place
/// to rounding. Returns `launch` with the scratch that is left.
BatchLaunch solve_in_halos(const tridiagonal::System& system, const BatchLaunch& launch, tridiagonal::Algorithm branch);
std::size_t halos_scratch(const tridiagonal::System& system);

std::size_t certified_scratch(const tridiagonal::System& system);

/// Enqueues, like solve_batch: windows with halos, for what forgets within those, then solve_windows. Ends as `certified` with a bound, or as `exact` where
/// residuals show the backward error of elimination and no useful bound exists. Without `fall_back` what one pass cannot show to be either is
/// reported as not_certified; in place its right-hand side is then there again, to rounding.
void solve_certified(const tridiagonal::System& system, const BatchLaunch& launch, bool fall_back);

}  // namespace trifold::cuda
