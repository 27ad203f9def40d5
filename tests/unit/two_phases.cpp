// SPDX-License-Identifier: BSD-3-Clause
// The fastest way through two passes, by which a benchmark bounds what cores and links can do, beside what can be said of it on paper.
#include "bench/harness/two_phases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace trifold::bench {
namespace {

// Where nobody disturbs the other, each pass takes as long as the slower of its two, and the share is the one at which both passes together are shortest.
TEST(TwoPhases, TheSlowerOfTwo) {
    const double reduced = 1.83, to = 1.66, finished = 1.5, from = 6.6;
    const std::vector<PhaseMode> modes{{1, reduced, to, 0}, {1, reduced, 0, 0}, {1, 0, to, 0}, {2, finished, 0, from}, {2, finished, 0, 0}, {2, 0, 0, from}};
    double best = 0, at = 0;
    for (double f = 0; f <= 1; f += 1e-4)
        if (const double rate = 1 / (std::max(f / reduced, (1 - f) / to) + std::max(f / finished, (1 - f) / from)); rate > best) best = rate, at = f;
    const TwoPhases found = fastest(modes);
    EXPECT_NEAR(found.rows_per_s, best, 1e-3 * best);
    EXPECT_NEAR(found.share, at, 1e-3);
    EXPECT_EQ(found.sent, 0);
}

TEST(TwoPhases, OneDeviceOnly) {
    const std::vector<PhaseMode> cores{{1, 2, 0, 0}, {2, 3, 0, 0}, {2, 0, 0, 1}};
    EXPECT_NEAR(fastest(cores).rows_per_s, 1 / (1.0 / 2 + 1.0 / 3), 1e-9);
    EXPECT_NEAR(fastest(cores).share, 1, 1e-9);
    EXPECT_NEAR(fastest(cores).first, 0.6, 1e-9);
    const std::vector<PhaseMode> link{{1, 0, 2, 0}, {2, 0, 0, 8}};
    EXPECT_NEAR(fastest(link).rows_per_s, 1 / (1.0 / 2 + 1.0 / 8), 1e-9);
    EXPECT_EQ(fastest(link).share, 0);
}

// What has ended leaves its pace to the other, and a device takes rows back where its way there would be idle.
TEST(TwoPhases, MoreWaysAreNotSlower) {
    std::vector<PhaseMode> modes{{1, 1, 1, 0}, {2, 0.5, 0, 4}};
    double before = fastest(modes).rows_per_s;
    for (const PhaseMode& more : {PhaseMode{2, 1, 0, 0}, PhaseMode{2, 0.5, 1, 3}, PhaseMode{1, 2, 0, 0}}) {
        modes.push_back(more);
        const double after = fastest(modes).rows_per_s;
        EXPECT_GE(after, before * (1 - 1e-12));
        before = after;
    }
    EXPECT_GT(fastest(modes).sent, 0);
    EXPECT_GT(before, 1.2 * fastest(std::vector<PhaseMode>(modes.begin(), modes.begin() + 2)).rows_per_s);
}

// Units do not matter, and where nobody can finish there is no rate.
TEST(TwoPhases, ScalesAndRefuses) {
    std::vector<PhaseMode> modes{{1, 1, 1, 0}, {2, 0.5, 0, 4}};
    const double rate = fastest(modes).rows_per_s;
    for (PhaseMode& mode : modes) mode.cores *= 1e9, mode.to *= 1e9, mode.from *= 1e9;
    EXPECT_NEAR(fastest(modes).rows_per_s, 1e9 * rate, 1);
    modes.pop_back();
    EXPECT_EQ(fastest(modes).rows_per_s, 0);
}

}  // namespace
}  // namespace trifold::bench
