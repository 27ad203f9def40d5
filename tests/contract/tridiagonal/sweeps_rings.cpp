// SPDX-License-Identifier: BSD-3-Clause
// Sweeps along rings over meshes that no chip holds, on GPUs, against the cpu, which is held against the reference elsewhere.
#include <cmath>
#include <vector>

#include "contract/tridiagonal/sweeps_beside.hpp"
#include "contract/tridiagonal/sweeps_fields.hpp"

namespace trifold::tests {
namespace {

class SweepsRings : public OnCompilingGpu {};

// Rows that fill lanes and that do not, segments of odd rows, lines that have no whole number of them, all steps in one launch, flat meshes, another field's neighbours two points away.
const std::vector<Case> meshes = {{{128, 128, 100, 1}, ring, ring, ring, 0}, {{100, 70, 65, 3}, ring, odd, ring, 0}, {{257, 31, 40, 2}, ring, even, odd, 0}, {{64, 250, 33, 2}, odd, ring, even, 0},
                                  {{90, 75, 45, 2}, ring, ring, ring, 0}, {{80, 97, 61, 1}, odd, ring, ring, 0}, {{512, 400, 5, 1}, even, ring, ring, 0}, {{64, 64, 64, 2}, ring, ring, ring, 0},
                                  {{96, 64, 80, 1}, ring, odd, ring, 0}, {{1000, 300, 1, 2}, ring, ring, even, 1}, {{300, 1000, 1, 2}, ring, even, even, 1}, {{513, 511, 1, 3}, ring, odd, even, 1},
                                  {{400, 500, 1, 2}, odd, ring, even, 2}, {{900, 1024, 1, 1}, ring, ring, even, 2}, {{192, 192, 192, 1}, ring, ring, ring, 0}};

// Enough of them for lines along y or z to be solved in parts of the other passes, and for groups.
const std::vector<Case> many_meshes = {{{64, 64, 48, 100}, ring, ring, ring, 0}, {{95, 48, 33, 132}, even, ring, odd, 0}, {{100, 24, 40, 264}, ring, odd, ring, 0}, {{96, 96, 20, 100}, odd, ring, ring, 3},
                                       {{96, 80, 64, 36}, ring, odd, odd, 3}, {{256, 32, 96, 8}, ring, ring, ring, 0}, {{80, 80, 80, 34}, odd, ring, ring, 0}, {{96, 96, 96, 20}, ring, ring, ring, 0},
                                       {{640, 640, 1, 42}, ring, ring, even, 1}};

TEST_P(SweepsRings, AgreeWithTheCpuF64) { compare<Fields<double>>(meshes, 3, 1e-13); }
TEST_P(SweepsRings, AgreeWithTheCpuF32) { compare<Fields<float>>(meshes, 3, 3e-5); }
TEST_P(SweepsRings, ManyMeshesAgreeWithTheCpuF64) { compare<Fields<double>>(many_meshes, 2, 1e-13); }
TEST_P(SweepsRings, ManyMeshesAgreeWithTheCpuF32) { compare<Fields<float>>(many_meshes, 2, 3e-5); }

// A launch per pass or one for all, parts of lines in other passes, groups. Products of the right-hand side are neighbours' too.
TEST_P(SweepsRings, AMeshHasItsBitsInWhateverKernelsTakeItF64) {
    for (const MeshShape& shape : {MeshShape{64, 64, 64, 3}, {64, 64, 64, 66}, {80, 80, 80, 34}, {96, 96, 96, 20}, {128, 128, 128, 9}}) one_of_many<Fields<double>>(Case{shape, ring, ring, ring, 0}, with_products);
    one_of_many<Fields<double>>(Case{{640, 640, 1, 42}, ring, ring, even, 1});
}

TEST_P(SweepsRings, AMeshHasItsBitsInWhateverKernelsTakeItF32) {
    for (const MeshShape& shape : {MeshShape{72, 72, 72, 24}, {80, 80, 80, 3}, {80, 80, 80, 50}, {96, 96, 96, 49}, {128, 128, 128, 9}, {256, 256, 256, 2}}) one_of_many<Fields<float>>(Case{shape, ring, ring, ring, 0}, with_products);
}

// One value that is not finite spoils five lines along x, once around the mesh too; its mesh stops, the others go on.
TEST_P(SweepsRings, LinesThatFailAreCountedAndNamed) {
    for (const std::int64_t y : {33, 0}) {
        const Case one{{96, 80, 70, 3}, ring, ring, ring, 0};
        Fields<double> ours(one), expected(one);
        const auto at = [&](std::int64_t m) { return static_cast<std::size_t>(((m * 70 + 21) * 80 + y) * 96 + 40); };
        for (Fields<double>* fields : {&ours, &expected}) fields->u[at(1)] = NAN;
        const std::vector<double> before = ours.u;
        const SweepOutcome outcome = ours.run(queue, 3), right = expected.run(cpu, 3);
        EXPECT_EQ(outcome.reason, Reason::not_finite);
        EXPECT_EQ(outcome.failures, 5);
        EXPECT_EQ(outcome.step, right.step);
        EXPECT_EQ(outcome.axis, 0);
        EXPECT_EQ(outcome.mesh, 1);
        EXPECT_EQ(outcome.z, 20);
        EXPECT_EQ(outcome.y, y);
        for (const std::int64_t mesh : {0, 2}) {
            EXPECT_LE(ours.off(expected, mesh), 1e-13);
            EXPECT_NE(ours.u[at(mesh)], before[at(mesh)]) << "the other meshes have had their first step";
        }
    }
}

// Lines along z alone, alone and in a batch whose groups run beside each other: one value is so large that its line's solution is not a number any more.
TEST_P(SweepsRings, ALineAlongZThatFailsIsNamed) {
    for (const std::size_t meshes : {std::size_t{2}, std::size_t{66}}) {
        constexpr std::size_t each = 64 * 64 * 64;
        const std::size_t bad = meshes - 1;
        Fields<double> ours({{64, 64, 64, static_cast<std::int64_t>(meshes)}, ring, ring, ring, 0});
        ours.sweeps[0].lines[2].constant = {-0.2e-10, 1.4e-10, -0.2e-10};
        ours.u[bad * each + (21 * 64 + 33) * 64 + 40] = 2.8e298;
        const std::vector<double> before = ours.u;
        const SweepOutcome outcome = ours.run(queue, 3);
        EXPECT_EQ(outcome.reason, Reason::not_finite);
        EXPECT_EQ(outcome.failures, 1);
        EXPECT_EQ(outcome.step, 0);
        EXPECT_EQ(outcome.axis, 2);
        EXPECT_EQ(outcome.mesh, static_cast<std::int64_t>(bad));
        EXPECT_EQ(outcome.x, 40);
        EXPECT_EQ(outcome.y, 33);
        for (std::size_t m = 0; m < meshes; ++m) EXPECT_EQ(ours.u[m * each] == before[m * each], m == bad) << "other meshes have had their first step";
    }
}

// Rings that no elimination without pivots is safe for: others solve them.
TEST_P(SweepsRings, AMatrixThatNeedsPivotsGetsThem) {
    Fields<double> ours({{70, 300, 1, 2}, ring, ring, even, 1}), expected = ours;
    for (Fields<double>* fields : {&ours, &expected}) fields->sweeps[0].lines[1].constant = {1, 1e-3, 1.1}, fields->parameters = {0.1, 0.1, 0.1};
    ASSERT_TRUE(ours.run(queue, 1).ok());
    ASSERT_TRUE(expected.run(cpu, 1).ok());
    EXPECT_LE(largest_difference(ours.u, expected.u), 1e-10);
}

TRIFOLD_ON_EVERY_DEVICE(SweepsRings);

}  // namespace
}  // namespace trifold::tests
