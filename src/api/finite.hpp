// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "problems/tridiagonal/system.hpp"
#include "trifold/outcome.hpp"

namespace trifold::tridiagonal {

/// Looks at every value that a solve would read. Returns true where all are finite; else false with reason not_finite and the
/// first bad row of the first bad system (lowest number) in the outcome. Generators are not looked at.
bool all_finite(const System& system, int threads, Outcome& outcome);

}  // namespace trifold::tridiagonal
