// SPDX-License-Identifier: BSD-3-Clause
// A shared solve as a user calls it, of which calls may fail: right whatever they do, and all rows somebody's.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "trifold/trifold.hpp"
#include "unit/split.hpp"

namespace trifold::tests {

/// In a Context of its own, whose first solve is everybody's. Returns the rows that the report gives to devices, or -1 where it threw.
inline std::int64_t solve_whole(SplitCase<double>& system, const ContextOptions& of_context, const std::string& devices, tridiagonal::Options options, Report& report, const std::string& what) {
    system.renew();
    Context context(of_context);
    Queue queue(context, devices);
    options.report = &report;
    try {
        EXPECT_TRUE(tridiagonal::solve(queue, system.problem(), options).ok()) << what;
    } catch (const Error& error) {
        ADD_FAILURE() << error.what() << ", " << what;
        return -1;
    }
    EXPECT_LE(system.residual(), 64) << "a wrong answer: " << what;
    std::int64_t rows = 0;
    for (const DeviceShare& share : report.devices) rows += share.rows;
    return rows;
}

}  // namespace trifold::tests
