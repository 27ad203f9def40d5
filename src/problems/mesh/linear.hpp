// SPDX-License-Identifier: BSD-3-Clause
// Point functions that are sums of values of fields times numbers, found in their text.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "trifold/point_function.hpp"

namespace trifold::mesh {

struct Term {
    int field, dx, dy, dz;
    double coefficient;
};

/// The sum that a function of one result is, each value once; nothing where it is none or has other parts than +, -, *, /, parentheses, numbers, p(k), at(…) and names for these.
/// The function keeps to the subset (access_of).
std::optional<std::vector<Term>> linear_terms(const PointFunction& function, std::span<const double> parameters);

}  // namespace trifold::mesh
