// SPDX-License-Identifier: BSD-3-Clause
// How many roundings LU with partial pivoting gathers in one equation of a long system, seen from a few places.
#pragma once

#include "problems/tridiagonal/system.hpp"

namespace trifold::tridiagonal {

/// gtsv's pending row takes a rounding with every row that it loses to, passes m² of their squares on where it is the pivot row itself (m: multiplier), and leaves them in the
/// equation that it then is. The root of their largest sum of squares, by up to 8192 rows (512 of fewer than 2^19) at four places, the least of these. 1 or 2 where something dominates, the root of the rows where
/// nothing is ever forgotten. LU leaves about an eighth of that number of unit roundoffs (measured: docs/notes/two_pass.md). Views in this
/// process's memory and scalars.
double lu_gathers(const System& system);

}  // namespace trifold::tridiagonal
