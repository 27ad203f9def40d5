// SPDX-License-Identifier: BSD-3-Clause
// The cpu's `sweep_pivoted` of the tridiagonal contract.
#pragma once

#include "families/tridiagonal/ops.hpp"

namespace trifold::cpu {

/// As Ops::sweep_pivoted, for what two_pass_refuses() lets through. Scratch: pivoted_scratch().
bool sweep_pivoted(const tridiagonal::System& system, const tridiagonal::Launch& launch);

/// As Ops::sweep_pivoted_scratch; 0 where it would not start.
std::size_t pivoted_scratch(const tridiagonal::System& system, int threads);

/// Rows after which elimination with pivoting has forgotten what was before (downwards) or behind (upwards) it, to `close`, seen from a few
/// places: the most of them, or limit + 1.
std::int64_t pivoted_decay(const tridiagonal::System& system, double close, std::int64_t limit);

/// A system that rows anywhere matter to, as far as a few places tell: sweep_pivoted() leaves a long one to two passes, and a short one keeps an unknown for 64 rows.
bool forgets_nothing(const tridiagonal::System& system);

}  // namespace trifold::cpu
