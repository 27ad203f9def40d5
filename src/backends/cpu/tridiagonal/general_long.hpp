// SPDX-License-Identifier: BSD-3-Clause
// One long system that is periodic or adds to x, or a long piece of a ragged batch, by what solves plain long systems.
//
// Accumulating: x is solved for in scratch and added. Periodic: with T the leading n-1 rows and columns, T y = rhs and T z = - the last column; the last
// row gives x[n-1], x = y + z x[n-1] the others (Golub and Van Loan, Matrix Computations, 4th ed., section 4.3.8). T may be singular where the ring is not:
// every row of x is checked, and where one does not hold the reference's LU with partial pivoting solves the ring.
#pragma once

#include "families/tridiagonal/ops.hpp"

namespace trifold::cpu {

/// Longer ones are cut for threads and lanes.
inline constexpr std::int64_t least_general_long = 8192;

/// Long enough, arrays with rows side by side or numbers.
bool general_long_takes(const tridiagonal::System& line);

std::size_t general_long_bytes(const tridiagonal::System& line, int threads);

/// line: levels == 0; any kind. launch.status is not written.
Outcome solve_general_long(const tridiagonal::System& line, const tridiagonal::Launch& launch);

}  // namespace trifold::cpu
