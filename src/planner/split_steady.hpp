// SPDX-License-Identifier: BSD-3-Clause
// What a split solve would have taken had everybody been ready when it began. The first solve of a process makes buffers and compiles programs while others already
// solve: what devices do side by side is seen only from then on.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "trifold/report.hpp"

namespace trifold::tridiagonal {

struct Steady {
    double seconds = 0;              ///< 0 = too little was left when the last one was ready
    std::vector<double> rows_per_s;  ///< of each device, all others at work
};

/// trace: of devices 0 … devices-1, all of which were to take part. seconds: of the solve, which had `rows` rows.
Steady steady(std::span<const TraceEvent> trace, std::size_t devices, double rows, double seconds);

}  // namespace trifold::tridiagonal
