// SPDX-License-Identifier: BSD-3-Clause
// Boxes that are solved in one pass a step, without a GPU: who takes part, and where things lie.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/cuda/mesh/planes/prepare.hpp"

namespace trifold::cuda::planes {
namespace {

TRIFOLD_POINT_FUNCTION(spread, {
    real u = at(0, 0, 0, 0);
    out(0) = p(0) * (at(0, -1, 0, 0) - u - (u - at(0, 1, 0, 0))) + p(1) * (at(0, 0, -1, 0) - u - (u - at(0, 0, 1, 0))) + p(2) * (at(0, 0, 0, -1) - u - (u - at(0, 0, 0, 1)));
})
TRIFOLD_POINT_FUNCTION(add, { out(0) = at(0, 0, 0, 0) + at(1, 0, 0, 0); })

/// A batch of boxes of n ny z points, n where nothing is said; nothing reads its field.
template <class T>
struct Boxes {
    alignas(256) T values[64] = {};
    std::vector<AnyField> fields;
    std::vector<Sweep> sweeps;
    std::vector<double> parameters{0.3, 0.2, 0.1};
    MeshProblem problem;
    mesh::Checked checked;

    Boxes(int n, std::int64_t meshes, std::array<double, 3> row = {-0.3, 1.6, -0.3}, int z = 0, int ny = 0) {
        const MeshShape shape{n, ny ? ny : n, z ? z : n, meshes};
        fields = {Field<T>::packed(values, shape)};
        sweeps = {{spread, {{0, row}, {1, row}, {2, row}}, add, 0, {}}};
        problem = {shape, fields, sweeps, parameters};
        checked = mesh::check(problem);
    }
};

/// On an H200: how many at least, for enough multiprocessors to have a part of a segment, and how many blocks have a plane then and in large batches.
struct Shape {
    int n;
    std::int64_t least;
    int blocks_of_few, blocks;
    int ny = 0;
};

template <class T>
void taken_by_many(const Shape& shape) {
    SCOPED_TRACE(std::to_string(shape.n) + " x " + std::to_string(shape.ny) + (sizeof(T) == 8 ? " in doubles" : ""));
    const Chip chip;
    const int n = shape.n, ny = shape.ny ? shape.ny : n;
    const auto boxes = [&](std::int64_t meshes, const std::array<double, 3>& of = {-0.3, 1.6, -0.3}) { return Boxes<T>(n, meshes, of, ny, ny); };
    EXPECT_EQ(plan_of(boxes(shape.least).checked, chip).refuses, nullptr);
    EXPECT_EQ(plan_of(boxes(shape.least).checked, chip).blocks, shape.blocks_of_few);
    EXPECT_EQ(plan_of(boxes(500).checked, chip).refuses, nullptr);
    EXPECT_EQ(plan_of(boxes(500).checked, chip).blocks, shape.blocks);
    EXPECT_NE(plan_of(boxes(shape.least - 1).checked, chip).refuses, nullptr) << "too few";
    EXPECT_NE(plan_of(Boxes<T>(n + 4, 72).checked, chip).refuses, nullptr) << "not timed";
    Boxes<T> spread_out = boxes(72);
    spread_out.fields[0].stride = {1, n + 4, (n + 4) * std::int64_t{ny}, (n + 4) * std::int64_t{ny} * ny};
    EXPECT_NE(plan_of(spread_out.checked, chip).refuses, nullptr) << "gaps between rows";
    Boxes<T> backwards = boxes(72);
    backwards.fields[0].stride[3] *= -1;
    EXPECT_NE(plan_of(backwards.checked, chip).refuses, nullptr) << "meshes in descending order";
    Boxes<T> beside = boxes(72);
    beside.fields[0].data = beside.values + 1;
    EXPECT_NE(plan_of(beside.checked, chip).refuses, nullptr) << "not at a vector";
    EXPECT_NE(plan_of(boxes(72, {-1, 1, -1}).checked, chip).refuses, nullptr) << "a matrix that needs pivots";
    Chip small = chip;
    small.shared_per_block = 16 * 1024;
    EXPECT_NE(plan_of(boxes(72).checked, small).refuses, nullptr) << "planes do not fit";
    Chip old = chip;
    old.architecture = 80;
    EXPECT_NE(plan_of(boxes(72).checked, old).refuses, nullptr) << "another GPU";
    Chip full = chip;
    full.memory = static_cast<std::size_t>(72) * sizeof(T) * static_cast<std::size_t>(n) * static_cast<std::size_t>(ny) * static_cast<std::size_t>(ny) * 3;
    EXPECT_NE(plan_of(boxes(72).checked, full).refuses, nullptr) << "no memory for a second field";
}

TEST(OnePassAStep, IsTakenByManyBoxesWhosePlanesLieSideBySide) {
    taken_by_many<float>({80, 12, 1, 1});
    taken_by_many<float>({96, 7, 2, 1});
    taken_by_many<float>({128, 5, 2, 2});
    taken_by_many<double>({64, 10, 2, 1});
    taken_by_many<double>({80, 8, 2, 2});
    taken_by_many<float>({80, 15, 1, 1, 64});
    taken_by_many<double>({80, 10, 2, 2, 64});
}

// Segments, and so roundings, are the shape's; how a batch is dealt to blocks and streams is not.
template <class T>
void same_segments(int n, int ny = 0) {
    const Chip chip;
    constexpr std::array<double, 3> row{-0.3, 1.6, -0.3};
    const Segments one = segments_of(Boxes<T>(n, 1, row, ny, ny).checked);
    for (const std::int64_t meshes : {8, 12, 17, 24, 72, 500}) {
        const Plan plan = plan_of(Boxes<T>(n, meshes, row, ny, ny).checked, chip);
        EXPECT_EQ(plan.segments.rows, one.rows);
        EXPECT_EQ(plan.segments.rows_y, one.rows_y);
        EXPECT_EQ(plan.segments.rows_z, one.rows_z);
        EXPECT_GE(plan.groups, 1);
        EXPECT_TRUE(!plan.early || plan.groups == 1) << "blocks that come early keep other groups' out";
    }
}

TEST(OnePassAStep, HasTheSameSegmentsInEveryBatch) {
    constexpr std::array<double, 3> row{-0.3, 1.6, -0.3};
    const auto rows_z = [&](int n, int z) { return segments_of(Boxes<float>(n, 1, row, z).checked).rows_z; };
    EXPECT_EQ((std::array{rows_z(80, 80), rows_z(80, 64), rows_z(80, 84), rows_z(80, 100), rows_z(80, 16), rows_z(80, 1024)}), (std::array{16, 16, 14, 20, 0, 0}));
    EXPECT_EQ((std::array{rows_z(96, 96), rows_z(96, 40), rows_z(96, 100), rows_z(96, 97), rows_z(96, 24), rows_z(96, 704)}), (std::array{16, 20, 20, 0, 12, 22}));
    for (const int n : {80, 96, 128}) same_segments<float>(n);
    for (const int n : {64, 80}) same_segments<double>(n);
    same_segments<float>(80, 64), same_segments<float>(112, 96), same_segments<double>(80, 64), same_segments<double>(64, 96);
}

template <class T>
void lies_in_shared_memory(int n, bool swizzled, int ny = 0) {
    SCOPED_TRACE(std::to_string(n) + " x " + std::to_string(ny) + (sizeof(T) == 8 ? " in doubles" : ""));
    const Chip chip;
    constexpr int in_vector = 16 / sizeof(T);
    for (const std::int64_t meshes : {15, 500}) {
        const Boxes<T> boxes(n, meshes, {-0.3, 1.6, -0.3}, ny, ny);
        const Plan plan = plan_of(boxes.checked, chip);
        ASSERT_EQ(plan.refuses, nullptr);
        const Layout<T> layout = layout_of<T>(boxes.checked, plan);
        EXPECT_LE(static_cast<std::size_t>(layout.shared_bytes()), chip.shared_per_block);
        EXPECT_EQ(layout.swizzled(), swizzled);
        EXPECT_EQ(layout.threads() % 32, 0);
        for (const int at : {layout.part(), layout.values(), layout.before(), layout.last(), layout.first(), layout.beside(), layout.along_x(), layout.along_y(), layout.along_z(), layout.barriers()}) EXPECT_EQ(at % in_vector, 0);
        for (const int at : {layout.part(), layout.values(), layout.before()}) EXPECT_TRUE(!swizzled || at * sizeof(T) % 1024 == 0) << "what is exchanged depends on the address";
        for (const int rows : {layout.rows, layout.rows_y}) EXPECT_EQ(layout.apart(rows) / in_vector % 2, 1) << "lanes would meet in a bank";
        std::vector<T> tables;
        ASSERT_TRUE(tables_of(boxes.checked, plan, tables));
        EXPECT_EQ(static_cast<int>(tables.size()), layout.tables());
    }
}

TEST(OnePassAStep, LiesInSharedMemory) {
    lies_in_shared_memory<float>(80, false);
    lies_in_shared_memory<float>(96, false);
    lies_in_shared_memory<float>(128, true);
    lies_in_shared_memory<double>(64, true);
    lies_in_shared_memory<double>(80, false);
    lies_in_shared_memory<float>(80, false, 64);
    lies_in_shared_memory<double>(80, false, 64);
    lies_in_shared_memory<float>(96, false, 128);
    lies_in_shared_memory<float>(128, true, 80);
    lies_in_shared_memory<double>(64, true, 112);
    lies_in_shared_memory<double>(96, false, 80);
}

}  // namespace
}  // namespace trifold::cuda::planes
