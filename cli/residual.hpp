// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "trifold/tridiagonal.hpp"

namespace trifold::cli {

struct BackwardError {
    double worst = 0;          ///< over all systems; NaN where x or a coefficient is not finite
    std::int64_t system = -1;  ///< where that is
    std::int64_t row = -1;     ///< its row with the largest residual
};

/// Normwise backward error of x, per system max|rhs - A x| / (‖A‖∞ max|x| + max|rhs|)  (Rigal and Gaches, J. ACM 14,
/// 1967): how far the system has to be moved for x to solve it exactly. Residuals are accumulated in the next wider
/// type, so that they are not rounding themselves. Coefficients are views or scalars; not transposed.
BackwardError backward_error(const tridiagonal::Problem& problem, int threads);

/// What a backward error may be before x is called wrong: a thousand roundings of the type.
double backward_error_limit(DType dtype);

}  // namespace trifold::cli
