// SPDX-License-Identifier: BSD-3-Clause
#include "planner/split_steady.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace trifold::tests {
namespace {

using namespace tridiagonal;

/// Device 0 at 400 rows a second from the beginning, on `threads` threads; device 1 at 200 from 1 s on, which it has spent on its programs.
std::vector<TraceEvent> late(int threads, double end) {
    std::vector<TraceEvent> trace;
    for (int t = 0; t < threads; ++t)
        for (double at = 0; at < end; at += 0.25) trace.push_back({0, t, "kernel", 1000 * t + static_cast<std::int64_t>(100 * at), 100 / threads, at, at + 0.25, 0});
    // Two under way at a time.
    for (double at = 1; at < end; at += 0.25) {
        const auto first = static_cast<std::int64_t>(100000 + 100 * at);
        trace.push_back({1, 0, "to device", first, 50, at == 1 ? 0 : at - 0.25, at, 0});
        trace.push_back({1, 0, "kernel", first, 50, at, at + 0.25, 0});
    }
    return trace;
}

TEST(SplitSteady, WithoutTheBeginning) {
    for (const int threads : {1, 2}) {
        const std::vector<TraceEvent> trace = late(threads, 5);
        const double rows = 400 * 5 + 200 * 4;
        const Steady seen = steady(trace, 2, rows, 5.1);
        ASSERT_EQ(seen.rows_per_s.size(), 2u);
        EXPECT_NEAR(seen.rows_per_s[0], 400, 1);
        EXPECT_NEAR(seen.rows_per_s[1], 200, 8);  // the last to begin end together, half done twice
        EXPECT_NEAR(seen.seconds, rows / (seen.rows_per_s[0] + seen.rows_per_s[1]) + 0.1, 1e-9);
    }
}

TEST(SplitSteady, NotSeen) {
    EXPECT_EQ(steady({}, 2, 100, 1).seconds, 0);
    // All was done when the other one was ready, or nearly.
    EXPECT_EQ(steady(late(1, 1.25), 2, 550, 1.25).seconds, 0);
    std::vector<TraceEvent> trace = late(1, 5);
    EXPECT_EQ(steady(trace, 3, 2800, 5).seconds, 0) << "the third never did anything";
}

// Of two passes the first counts, and the second as it was.
TEST(SplitSteady, TwoPasses) {
    std::vector<TraceEvent> trace = late(1, 5);
    const Steady one = steady(trace, 2, 2800, 5);
    trace.push_back({-1, 0, "join", 0, 2800, 5.3, 5.4, 0});
    trace.push_back({0, 0, "kernel", 0, 2000, 5.4, 6, 0});
    const Steady two = steady(trace, 2, 2800, 6);
    EXPECT_NEAR(two.seconds, one.seconds + 1, 0.35);
    EXPECT_EQ(two.rows_per_s, one.rows_per_s);
}

}  // namespace
}  // namespace trifold::tests
