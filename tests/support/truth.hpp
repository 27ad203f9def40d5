// SPDX-License-Identifier: BSD-3-Clause
// The solution in double-double arithmetic, by code that shares nothing with the library.
#pragma once

#include <vector>

#include "support/bands.hpp"
#include "support/double_double.hpp"

namespace trifold::tests {

/// x with about 32 - log10(condition) correct digits; empty where a pivot is zero in double-double. Tridiagonal systems by LU
/// with row exchanges; periodic ones by bordering with iterated refinement from n = 200 on, by dense elimination below.
std::vector<DoubleDouble> true_solution(const Bands<double>& system);

}  // namespace trifold::tests
