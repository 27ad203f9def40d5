// SPDX-License-Identifier: BSD-3-Clause
// What elimination with partial pivoting says of a matrix that the unpivoted one would not do: singular where, not finite where, or fine.
#pragma once

#include "problems/tridiagonal/system.hpp"
#include "trifold/outcome.hpp"

namespace trifold::cpu {

struct PivotCheck {
    Reason reason = Reason::exact;
    std::int64_t row = -1;
};

/// system: one (levels == 0); its rhs is not read. A ring takes eight words per row for the time of the call.
template <class T>
PivotCheck check_pivots(const tridiagonal::System& system);

/// One system of any kind by the reference's LU with partial pivoting: in scratch of pivoted_bytes, aligned to 64, or in memory of its own.
template <class T>
Outcome solve_pivoted(const tridiagonal::System& system, void* scratch = nullptr);
std::size_t pivoted_bytes(const tridiagonal::System& system);

}  // namespace trifold::cpu
