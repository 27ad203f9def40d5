// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <limits>

#include "io/generators/generator.hpp"

namespace trifold::io {

/// What `random` draws and what it sets; NaN = drawn uniformly from [-1, 1).
struct RandomEntries {
    double lower = std::numeric_limits<double>::quiet_NaN();
    double diag = std::numeric_limits<double>::quiet_NaN();
    double upper = std::numeric_limits<double>::quiet_NaN();
    double zeros = 0, lower_scale = 1, weak_link = 1;
};

void fill_random(const RandomEntries& entries, const Tile& tile);

}  // namespace trifold::io
