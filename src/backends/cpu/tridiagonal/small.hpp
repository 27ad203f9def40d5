// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include "problems/tridiagonal/system.hpp"
#include "trifold/outcome.hpp"

namespace trifold::cpu {

inline constexpr std::int64_t small_rows = 1024;

/// One system (levels == 0, views and scalars, neither periodic nor accumulating) of 1 to small_rows rows, on the calling
/// thread and its stack (48 KiB) alone. Unpivoted where the sweep shows that to be backward stable, else LU with partial pivoting.
/// rhs is intact (in place too) whenever the outcome is not ok.
void solve_small(const tridiagonal::System& system, Outcome& outcome) noexcept;

/// One of more rows, without pivots: false, and nothing is stored, where they are needed or x is not finite. scratch: from_ends_bytes.
inline constexpr std::int64_t from_ends_rows = 8192;
std::size_t from_ends_bytes(const tridiagonal::System& system);
bool solve_from_ends(const tridiagonal::System& system, void* scratch, Outcome& outcome);

}  // namespace trifold::cpu
