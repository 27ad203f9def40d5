// SPDX-License-Identifier: BSD-3-Clause
// How good a computed x is.
#pragma once

#include <vector>

#include "support/bands.hpp"
#include "support/double_double.hpp"

namespace trifold::tests {

/// Normwise backward error |rhs - A x| / (|A| |x| + |rhs|) in the maximum norm, the residual in double-double (J. L. Rigal and
/// J. Gaches, 1967). Infinite where x has a value that is not finite, or a row of finite numbers
/// a residual that is not. Rows are scaled so that nothing overflows.
double backward_error(const Bands<double>& system, const std::vector<double>& x);

/// |x - truth| / |truth| in the 2-norm; 0 where both are zero.
double forward_error(const std::vector<double>& x, const std::vector<DoubleDouble>& truth);

/// max|x - truth|.
double largest_error(const std::vector<double>& x, const std::vector<DoubleDouble>& truth);
double largest(const std::vector<double>& x);

bool all_finite(const std::vector<double>& x);
double median(std::vector<double> values);

template <class T>
std::vector<double> as_double(const std::vector<T>& x) {
    return {x.begin(), x.end()};
}

}  // namespace trifold::tests
