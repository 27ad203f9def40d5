// SPDX-License-Identifier: BSD-3-Clause
// What the documentation promises of a solve, asked of one that has been made.
#pragma once

#include <string>
#include <vector>

#include "contract/tridiagonal/trial.hpp"
#include "trifold/trifold.hpp"

namespace trifold::tests {

struct Circumstances {
    bool named = false;             ///< an algorithm was asked for: it may fail, and its residual is bounded less well
    bool checked = false;           ///< check_finite
    bool kept = false;              ///< a Factor's solve
    bool rows_are_named = false;    ///< this device names the first row that is not finite
    double tolerance = 0;
};

/// Empty where all is as promised. `status` is empty where it was not asked for.
template <class T>
std::string verdict(const Trial<T>& trial, const Outcome& outcome, const std::vector<std::int8_t>& status, const Circumstances& how);

/// The same of what a factorisation says; systems without the leading dimensions.
template <class T>
std::string verdict_of_factor(const Trial<T>& trial, const Outcome& outcome, std::int64_t systems);

}  // namespace trifold::tests
