// SPDX-License-Identifier: BSD-3-Clause
// The cpu's verbs of the certified one-pass solve: see `decay`, `sweep_scratch`, `sweep` and `unsweep` of the contract.
#pragma once

#include "families/tridiagonal/ops.hpp"

namespace trifold::cpu {

/// nullptr, or why the sweep does not take this system, as Ops::refuses.
const char* sweep_refuses(const tridiagonal::System& system);

std::int64_t decay(const tridiagonal::System& system, const tridiagonal::Launch& launch, double close, double growth,
                   std::int64_t limit);
std::size_t sweep_scratch(const tridiagonal::System& system, const tridiagonal::Stretches& stretches, int threads);
tridiagonal::SweepResult sweep(const tridiagonal::System& system, const tridiagonal::Stretches& stretches,
                               const tridiagonal::Launch& launch, tridiagonal::StretchBound* bounds);
void unsweep(const tridiagonal::System& system, const tridiagonal::Stretches& stretches, const tridiagonal::Launch& launch);

}  // namespace trifold::cpu
