// SPDX-License-Identifier: BSD-3-Clause
// Meshes on chip: how they are cut, and which matrices are refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/cuda/mesh/resident/cut.hpp"
#include "backends/cuda/mesh/resident/factors.hpp"
#include "support/random.hpp"

namespace trifold::tests {
namespace {

using namespace cuda::resident;

TEST(Resident, UnsafeMatricesAreRefused) {
    std::vector<double> table;
    double ends[2];
    const auto safe = [&](double diag, int segments) {
        std::vector<double> lower(32, -1.0), d(32, diag), upper(32, -1.0);
        return append_factors<double>({32, segments, 32 / segments, 32 / segments, segments, false}, Sides{}, lower, d, upper, table, ends);
    };
    EXPECT_TRUE(safe(2.5, 1));
    EXPECT_TRUE(safe(2.5, 4));
    EXPECT_FALSE(safe(0, 1));
    EXPECT_FALSE(safe(0, 4));
    EXPECT_FALSE(safe(1e-3, 4));
    EXPECT_FALSE(safe(2, 4)) << "even sides: singular";
    EXPECT_FALSE(safe(NAN, 4));
}

// Every cut covers its mesh, fits, and leaves no block without rows.
TEST(Resident, EveryCutIsWhole) {
    const OnChip chip{227 * 1024, 228 * 1024, true};
    Random random(9);
    int fit = 0, spreads = 0;
    for (int trial = 0; trial < 3000; ++trial) {
        Plan plan;
        plan.vector = random.chance(0.5) ? 4 : 2;
        const bool solid = random.chance(0.5);
        for (int axis = 0; axis < (solid ? 3 : 2); ++axis) plan.mesh[axis] = 1 + static_cast<int>(random.below(solid ? 70 : 400));
        plan.fields = 1 + static_cast<int>(random.below(3));
        for (int f = 0; f < plan.fields; ++f) {
            plan.field[f].kept = true;
            for (int axis = 0; axis < 3; ++axis) plan.field[f].ghosts[axis] = std::min<int>(plan.mesh[axis], static_cast<int>(random.below(3)));
        }
        plan.lines = solid ? 3 : 2, plan.sweeps = 1, plan.sweep[0].lines = plan.lines;
        for (int l = 0; l < plan.lines; ++l) {
            plan.line[l].axis = l;
            if (trial % 3 == 0) plan.line[l].varies = random.chance(0.7), plan.line[l].ring = random.chance(0.3) && plan.mesh[l] > 2;
        }
        if (trial % 6 == 0) plan.sweep[0].kept = 5;
        int blocks = 0;
        if (!choose_cut(plan, chip, blocks)) continue;
        ++fit;
        if (trial % 2) {
            const Plan before = plan;
            spread(plan, chip, 1 + static_cast<std::int64_t>(random.below(4)), blocks);
            spreads += plan.cluster > before.cluster;
            for (int axis = 0; axis < 3; ++axis) ASSERT_TRUE(plan.segments(axis) == before.segments(axis) && plan.cut[axis].rows == before.cut[axis].rows);
        }
        ASSERT_GE(blocks, 1);
        ASSERT_LE(static_cast<std::size_t>(plan.elements()) * 16 / static_cast<std::size_t>(plan.vector), chip.shared_per_block);
        ASSERT_GE(plan.last_rows(), 1);
        ASSERT_LE(plan.last_rows(), plan.slab_rows);
        if (plan.slabs() == 1) {
            ASSERT_TRUE(plan.even_slabs());
        }
        for (int f = 0; f < plan.fields; ++f) ASSERT_GE(plan.last_rows(), plan.field[f].ghosts[plan.slab()]);
        for (int axis = 0; axis < (solid ? 3 : 2); ++axis) {
            if (plan.varies(axis) && plan.line[axis].ring) {
                ASSERT_EQ(plan.last_segment(axis), plan.cut[axis].rows);
            }
            ASSERT_GE(plan.last_segment(axis), 1);
            ASSERT_LE(plan.last_segment(axis), plan.cut[axis].rows);
            ASSERT_GE(plan.side_by_side(axis), 1);
            if (plan.crosses(axis)) {
                ASSERT_EQ(plan.cut[axis].segments * plan.cut[axis].rows, plan.slab_rows);
            }
        }
    }
    EXPECT_GT(fit, 1000);
    EXPECT_GT(spreads, 10);
}

}  // namespace
}  // namespace trifold::tests
