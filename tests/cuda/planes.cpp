// SPDX-License-Identifier: BSD-3-Clause
// Boxes that are solved in one pass a step, without a GPU: who takes part, and where things lie.
#include <gtest/gtest.h>

#include <vector>

#include "backends/cuda/mesh/planes/prepare.hpp"

namespace trifold::cuda::planes {
namespace {

TRIFOLD_POINT_FUNCTION(spread, {
    real u = at(0, 0, 0, 0);
    out(0) = p(0) * (at(0, -1, 0, 0) - u - (u - at(0, 1, 0, 0))) + p(1) * (at(0, 0, -1, 0) - u - (u - at(0, 0, 1, 0))) + p(2) * (at(0, 0, 0, -1) - u - (u - at(0, 0, 0, 1)));
})
TRIFOLD_POINT_FUNCTION(add, { out(0) = at(0, 0, 0, 0) + at(1, 0, 0, 0); })

/// A batch of boxes of n³ points; nothing reads its field.
struct Boxes {
    alignas(256) float values[64] = {};
    std::vector<AnyField> fields;
    std::vector<Sweep> sweeps;
    std::vector<double> parameters{0.3, 0.2, 0.1};
    MeshProblem problem;
    mesh::Checked checked;

    Boxes(int n, std::int64_t meshes, std::array<double, 3> row = {-0.3, 1.6, -0.3}, int z = 0) {
        const MeshShape shape{n, n, z ? z : n, meshes};
        fields = {Field<float>::packed(values, shape)};
        sweeps = {{spread, {{0, row}, {1, row}, {2, row}}, add, 0, {}}};
        problem = {shape, fields, sweeps, parameters};
        checked = mesh::check(problem);
    }
};

TEST(OnePassAStep, IsTakenByManyBoxesWhosePlanesLieSideBySide) {
    const Chip chip;
    for (const int n : {80, 96}) {
        const std::int64_t least = n == 80 ? 12 : 15;  // for 9 in 20 of the multiprocessors
        EXPECT_EQ(plan_of(Boxes(n, least).checked, chip).refuses, nullptr) << n;
        EXPECT_EQ(plan_of(Boxes(n, 500).checked, chip).refuses, nullptr) << n;
        EXPECT_NE(plan_of(Boxes(n, least - 1).checked, chip).refuses, nullptr) << "too few";
        EXPECT_NE(plan_of(Boxes(n + 4, 72).checked, chip).refuses, nullptr) << "not timed";
        Boxes spread_out(n, 72);
        spread_out.fields[0].stride = {1, n + 4, (n + 4) * std::int64_t{n}, (n + 4) * std::int64_t{n} * n};
        EXPECT_NE(plan_of(spread_out.checked, chip).refuses, nullptr) << "gaps between rows";
        Boxes beside(n, 72);
        beside.fields[0].data = beside.values + 1;
        EXPECT_NE(plan_of(beside.checked, chip).refuses, nullptr) << "not at a vector";
        EXPECT_NE(plan_of(Boxes(n, 72, {-1, 1, -1}).checked, chip).refuses, nullptr) << "a matrix that needs pivots";
        Chip small = chip;
        small.shared_per_block = 100 * 1024;
        EXPECT_NE(plan_of(Boxes(n, 72).checked, small).refuses, nullptr) << "planes do not fit";
        Chip old = chip;
        old.architecture = 80;
        EXPECT_NE(plan_of(Boxes(n, 72).checked, old).refuses, nullptr) << "another GPU";
        Chip full = chip;
        full.memory = static_cast<std::size_t>(72) * 4 * static_cast<std::size_t>(n) * static_cast<std::size_t>(n) * static_cast<std::size_t>(n) * 3;
        EXPECT_NE(plan_of(Boxes(n, 72).checked, full).refuses, nullptr) << "no memory for a second field";
    }
}

// Segments, and so roundings, are the shape's; how a batch is dealt to streams is not.
TEST(OnePassAStep, HasTheSameSegmentsInEveryBatch) {
    const Chip chip;
    constexpr std::array<double, 3> row{-0.3, 1.6, -0.3};
    const auto rows_z = [&](int n, int z) { return segments_of(Boxes(n, 1, row, z).checked).rows_z; };
    EXPECT_EQ((std::array{rows_z(80, 80), rows_z(80, 64), rows_z(80, 84), rows_z(80, 100), rows_z(80, 16), rows_z(80, 1024)}), (std::array{16, 16, 14, 0, 0, 0}));
    EXPECT_EQ((std::array{rows_z(96, 96), rows_z(96, 40), rows_z(96, 100), rows_z(96, 97), rows_z(96, 24), rows_z(96, 704)}), (std::array{24, 20, 20, 0, 12, 22}));
    for (const int n : {80, 96}) {
        const Segments one = segments_of(Boxes(n, 1).checked);
        for (const std::int64_t meshes : {17, 24, 72, 500}) {
            const Plan plan = plan_of(Boxes(n, meshes).checked, chip);
            EXPECT_EQ(plan.segments.rows, one.rows);
            EXPECT_EQ(plan.segments.rows_z, one.rows_z);
            EXPECT_GE(plan.groups, 1);
            EXPECT_TRUE(!plan.early || plan.groups == 1) << "blocks that come early keep other groups' out";
        }
    }
}

TEST(OnePassAStep, LiesInSharedMemory) {
    const Chip chip;
    for (const int n : {80, 96}) {
        const Boxes boxes(n, 72);
        const Segments segments = segments_of(boxes.checked);
        const Layout<float> layout = layout_of<float>(boxes.checked, segments);
        EXPECT_LE(static_cast<std::size_t>(layout.shared_bytes()), chip.shared_per_block);
        EXPECT_EQ(layout.threads() % 32, 0);
        for (const int at : {layout.plane(), layout.values(), layout.before(), layout.last(), layout.first(), layout.along_x(), layout.along_y(), layout.along_z(), layout.barriers()}) EXPECT_EQ(at % 4, 0) << n;
        EXPECT_EQ(layout.apart() / 4 % 2, 1) << "lanes would meet in a bank";
        std::vector<float> tables;
        ASSERT_TRUE(tables_of(boxes.checked, segments, tables));
        EXPECT_EQ(static_cast<int>(tables.size()), layout.tables());
    }
}

}  // namespace
}  // namespace trifold::cuda::planes
