// SPDX-License-Identifier: BSD-3-Clause
// One system whose rows all multiprocessors together have room for: five words a row, whatever it forgets (docs/algorithms/gpu_held.md).
#pragma once

#include "backends/cuda/tridiagonal/batch.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::cuda {

/// Whether it is one, longer than what one cluster takes.
bool held_fits(const tridiagonal::System& system);

/// Bytes, for what blocks tell each other.
inline constexpr std::size_t held_scratch = 160 * 64;

/// Enqueues one kernel, which resets the outcome. Ends as `thomas`, exact, or as `certified` with a bound; else the outcome's words `handed_over` and `unstable` say so, and in place rhs is what it was. Returns how many blocks it has.
int solve_held(const tridiagonal::System& system, const BatchLaunch& launch);

}  // namespace trifold::cuda
