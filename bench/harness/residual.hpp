// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "io/tridiagonal_data.hpp"

namespace trifold::bench {

/// Normwise backward error  max|rhs - A x| / (max(|lower| + |diag| + |upper|) max|x| + max|rhs|)  over all systems; NaN where
/// anything is not finite. The arrays of `data` have one shape and C order, as generators make them.
double backward_error(const io::TridiagonalData& data, const io::Array& x);

}  // namespace trifold::bench
