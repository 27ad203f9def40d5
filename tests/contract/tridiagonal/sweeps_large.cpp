// SPDX-License-Identifier: BSD-3-Clause
// Sweeps over meshes that no chip holds, on GPUs, against the cpu, which is held against the reference elsewhere; and over meshes that are worth several threads of it.
#include <algorithm>
#include <cmath>
#include <vector>

#include "contract/tridiagonal/sweeps_beside.hpp"
#include "contract/tridiagonal/sweeps_fields.hpp"
#include "heat/stencils.hpp"

namespace trifold::tests {
namespace {

class SweepsLarge : public OnCompilingGpu {};

const std::vector<Case> meshes = {{{128, 128, 100, 1}, odd, odd, odd, 0}, {{100, 70, 65, 3}, even, odd, even, 0}, {{257, 31, 40, 2}, odd, even, odd, 0}, {{64, 250, 33, 2}, odd, odd, even, 0},
                              {{200, 256, 18, 1}, odd, odd, odd, 0},  {{512, 400, 5, 1}, even, even, odd, 0}, {{30, 600, 9, 2}, odd, odd, odd, 0},  {{1000, 300, 1, 2}, odd, odd, even, 1},
                              {{300, 1000, 1, 2}, odd, even, even, 1}, {{513, 511, 1, 3}, even, odd, even, 1}, {{400, 500, 1, 2}, odd, odd, even, 2},
                              // On a GPU: values that change threads in turns; rings in memory.
                              {{256, 192, 1, 2}, odd, odd, even, 1},  {{384, 384, 1, 1}, ring, ring, even, 1}, {{192, 200, 1, 2}, ring, odd, even, 2}, {{48, 48, 48, 3}, odd, odd, odd, 0},
                              {{48, 40, 44, 2}, ring, odd, even, 0},  {{900, 700, 1, 1}, ring, ring, even, 1}, {{128, 100, 90, 1}, ring, ring, ring, 0},
                              // A few small meshes, all steps in one launch.
                              {{64, 64, 64, 2}, even, odd, odd, 0},   {{96, 64, 80, 1}, odd, odd, even, 0}};

// Enough of them for lines along y to be solved in parts of the other passes: one segment, several, rows that are no vectors, a slab with a rest.
const std::vector<Case> many_meshes = {{{64, 64, 48, 100}, odd, odd, odd, 0}, {{95, 48, 33, 132}, even, odd, odd, 0}, {{100, 24, 40, 264}, odd, odd, even, 0}, {{96, 96, 20, 100}, odd, odd, odd, 3}, {{127, 64, 50, 66}, even, even, even, 3},
                                       // On an H200, in doubles, nobody is there to bring planes alone.
                                       {{256, 32, 96, 8}, odd, odd, odd, 0}};

TEST_P(SweepsLarge, AgreeWithTheCpuF64) { compare<Fields<double>>(meshes, 2, 1e-13); }
TEST_P(SweepsLarge, AgreeWithTheCpuF32) { compare<Fields<float>>(meshes, 2, 3e-5); }
TEST_P(SweepsLarge, ManyMeshesAgreeWithTheCpuF64) { compare<Fields<double>>(many_meshes, 2, 1e-13); }
TEST_P(SweepsLarge, ManyMeshesAgreeWithTheCpuF32) { compare<Fields<float>>(many_meshes, 2, 3e-5); }

// Smaller ones are one thread's, however many there are.
TEST(SweepsOnThreads, BitsDoNotDependOnTheirNumber) {
    Context alone({.threads = 1, .profile_path = "none", .log = {}}), three({.threads = 3, .profile_path = "none", .log = {}});
    Queue first(alone, "cpu"), second(three, "cpu");
    const Case cases[] = {{{300, 250, 3, 1}, odd, odd, odd, 0}, {{70, 61, 50, 1}, ring, odd, even, 3}, {{500, 430, 1, 1}, odd, odd, even, 1}, {{450, 480, 1, 1}, ring, ring, even, 1},
                          {{520, 400, 1, 1}, odd, odd, even, 2}, {{64, 40, 1, 80}, odd, ring, even, 1}, {{40, 30, 35, 5}, odd, odd, odd, 0}, {{50, 41, 1, 100}, ring, odd, even, 2}};
    const auto check = [&]<class T>(T) {
        for (const Case& one : cases) {
            Fields<T> single(one), several(one);
            ASSERT_TRUE(single.run(first, 2).ok());
            ASSERT_TRUE(several.run(second, 2).ok());
            EXPECT_EQ(single.u, several.u) << one.shape.x << " x " << one.shape.y << " x " << one.shape.z << " x " << one.shape.meshes << ", scheme " << one.scheme;
        }
    };
    check(double());
    check(float());
}

// One value that is not finite spoils five lines along x; its mesh stops, the others go on.
TEST_P(SweepsLarge, LinesThatFailAreCountedAndNamed) {
    const Case one{{96, 80, 70, 3}, odd, odd, odd, 0};
    Fields<double> ours(one), expected(one);
    const auto at = [&](std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t m) { return static_cast<std::size_t>(((m * 70 + z) * 80 + y) * 96 + x); };
    for (Fields<double>* fields : {&ours, &expected}) fields->u[at(40, 33, 21, 1)] = NAN;
    const std::vector<double> before = ours.u;
    const SweepOutcome outcome = ours.run(queue, 3), right = expected.run(cpu, 3);
    EXPECT_EQ(outcome.reason, Reason::not_finite);
    EXPECT_EQ(outcome.failures, 5);
    EXPECT_EQ(outcome.step, right.step);
    EXPECT_EQ(outcome.sweep, 0);
    EXPECT_EQ(outcome.axis, 0);
    EXPECT_EQ(outcome.mesh, 1);
    EXPECT_EQ(outcome.y, 33);
    EXPECT_EQ(outcome.z, 20);
    for (const std::int64_t mesh : {0, 2}) {
        EXPECT_LE(ours.off(expected, mesh), 1e-13);
        for (std::size_t k = at(0, 0, 0, mesh); k < at(0, 0, 0, mesh + 1); ++k) ASSERT_NE(ours.u[k], before[k]) << "the other meshes have had their first step";
    }
}

// All steps of a few small meshes are one launch, others have one per pass.
TEST_P(SweepsLarge, ASmallMeshHasTheBitsThatItHasInABatch) { one_of_many<Fields<double>>(Case{{64, 64, 64, 3}, odd, odd, odd, 0}); }

// On chip a few meshes are dealt to more blocks than many.
TEST_P(SweepsLarge, AMeshOnMoreBlocksHasTheBitsThatItHasInABatch) {
    one_of_many<Fields<float>>(Case{{64, 64, 64, 20}, odd, even, odd, 0}, with_products);
    one_of_many<Fields<float>>(Case{{48, 48, 48, 40}, ring, odd, ring, 0}, with_products);
    one_of_many<Fields<double>>(Case{{48, 48, 48, 20}, odd, ring, even, 0}, with_products);
}

// Lines along y are solved in parts of other passes where there are enough of them.
TEST_P(SweepsLarge, AMeshHasTheBitsThatItHasInALargeBatch) {
    for (const MeshShape& shape : {MeshShape{64, 64, 64, 66}, MeshShape{100, 96, 56, 36}}) one_of_many<Fields<double>>(Case{shape, odd, odd, odd, 0});
}

// Groups of meshes are cut otherwise than one mesh; and a right-hand side may be compiled for both as a compiler likes.
TEST_P(SweepsLarge, AMeshHasTheBitsThatItHasInGroups) {
    one_of_many<Fields<float>>(Case{{80, 80, 80, 34}, odd, even, odd, 0});
    one_of_many<Fields<float>>(Case{{80, 80, 80, 34}, odd, even, odd, 0}, with_products);
    one_of_many<Fields<float>>(Case{{96, 96, 96, 20}, odd, even, odd, 0}, with_products);
    one_of_many<Fields<float>>(Case{{128, 128, 128, 9}, odd, even, odd, 0}, with_products);
    one_of_many<Fields<double>>(Case{{640, 640, 1, 42}, odd, odd, even, 1});
}

// Where the kernels change with the batch: all steps in one launch, a launch per pass, parts of lines in other passes, groups. Products of the right-hand side are neighbours' too.
TEST_P(SweepsLarge, AMeshHasItsBitsInWhateverKernelsTakeItF64) {
    for (const MeshShape& shape : {MeshShape{64, 64, 64, 3}, {64, 64, 64, 66}, {80, 80, 80, 2}, {80, 80, 80, 34}, {80, 64, 64, 24}, {80, 64, 64, 52}}) one_of_many<Fields<double>>(Case{shape, odd, even, odd, 0}, with_products);
}

TEST_P(SweepsLarge, AMeshHasItsBitsInWhateverKernelsTakeItF32) {
    for (const MeshShape& shape : {MeshShape{72, 72, 72, 24}, {80, 80, 80, 3}, {80, 80, 80, 24}, {80, 80, 80, 50}, {96, 96, 96, 49}, {128, 128, 128, 9}, {192, 192, 192, 3}, {256, 256, 256, 2}}) one_of_many<Fields<float>>(Case{shape, odd, even, odd, 0}, with_products);
}

TEST_P(SweepsLarge, ALargeMeshHasItsBitsInWhateverKernelsTakeItF64) {
    for (const MeshShape& shape : {MeshShape{96, 96, 96, 20}, {128, 128, 128, 9}, {192, 192, 192, 3}, {256, 256, 256, 2}}) one_of_many<Fields<double>>(Case{shape, odd, even, odd, 0}, with_products);
}

// Heat's increments, of whose products a compiler once fused one or another by the registers that it had.
TEST_P(SweepsLarge, AMeshOfIncrementsHasItsBitsInWhateverKernelsTakeIt) {
    const auto increments = [](auto& fields) { fields.sweeps.front().rhs = heat::increment_3d; };
    for (const MeshShape& shape : {MeshShape{40, 56, 36, 5}, {88, 112, 28, 6}, {64, 64, 64, 3}, {96, 64, 80, 9}}) one_of_many<Fields<double>>(Case{shape, even, odd, even, 0}, increments), one_of_many<Fields<float>>(Case{shape, even, odd, even, 0}, increments);
}

// Values of sides are subtracted from right-hand sides.
TEST_P(SweepsLarge, AMeshWithValuesOnItsSidesHasItsBitsInWhateverKernelsTakeIt) {
    one_of_many<Fields<double>>(Case{{96, 80, 64, 36}, odd, odd, odd, 3});
    one_of_many<Fields<float>>(Case{{80, 80, 80, 34}, odd, odd, odd, 3});
}

TEST_P(SweepsLarge, AMeshOfALargeBatchThatFailsIsNamed) {
    constexpr std::size_t each = 64 * 64 * 64, meshes = 66;
    const auto at = [](std::size_t mesh) { return mesh * each + (21 * 64 + 33) * 64 + 40; };
    Fields<double> first({{64, 64, 64, meshes}, odd, odd, odd, 0});
    const std::vector<double> before = first.u;
    ASSERT_TRUE(first.run(queue, 1).ok());
    // At the beginning of the batch, at its end, and in both; several times, since groups of meshes run beside each other.
    for (const std::vector<std::size_t>& bad : {std::vector<std::size_t>{7}, {60}, {7, 60}, {60}, {7}, {7, 60}, {7}, {60}, {7, 60}}) {
        Fields<double> ours({{64, 64, 64, meshes}, odd, odd, odd, 0});
        for (const std::size_t mesh : bad) ours.u[at(mesh)] = NAN;
        const SweepOutcome outcome = ours.run(queue, 3);
        EXPECT_EQ(outcome.reason, Reason::not_finite);
        EXPECT_EQ(outcome.failures, 5 * static_cast<std::int64_t>(bad.size()));
        EXPECT_EQ(outcome.step, 0);
        EXPECT_EQ(outcome.axis, 0);
        EXPECT_EQ(outcome.mesh, static_cast<std::int64_t>(bad.front()));
        EXPECT_EQ(outcome.y, 33);
        EXPECT_EQ(outcome.z, 20);
        for (std::size_t m = 0; m < meshes; ++m) {
            if (std::find(bad.begin(), bad.end(), m) != bad.end()) EXPECT_EQ(ours.u[m * each], before[m * each]);
            else EXPECT_LE(ours.off(first, static_cast<std::int64_t>(m)), 1e-13) << "other meshes have had their first step, and no more";
        }
    }
}

// Lines along z alone, in a batch whose groups run beside each other: one value is so large that its line's solution is not a number any more.
TEST_P(SweepsLarge, ALineAlongZOfALargeBatchThatFailsIsNamed) {
    constexpr std::size_t each = 64 * 64 * 64, meshes = 66;
    for (const std::vector<std::size_t>& bad : {std::vector<std::size_t>{9}, {61}, {9, 61}}) {
        Fields<double> ours({{64, 64, 64, meshes}, odd, odd, odd, 0});
        ours.sweeps[0].lines[2].constant = {-0.2e-10, 1.4e-10, -0.2e-10};
        for (const std::size_t mesh : bad) ours.u[mesh * each + (21 * 64 + 33) * 64 + 40] = 2.8e298;
        const std::vector<double> before = ours.u;
        const SweepOutcome outcome = ours.run(queue, 3);
        EXPECT_EQ(outcome.reason, Reason::not_finite);
        EXPECT_EQ(outcome.failures, static_cast<std::int64_t>(bad.size()));
        EXPECT_EQ(outcome.step, 0);
        EXPECT_EQ(outcome.axis, 2);
        EXPECT_EQ(outcome.mesh, static_cast<std::int64_t>(bad.front()));
        EXPECT_EQ(outcome.x, 40);
        EXPECT_EQ(outcome.y, 33);
        for (std::size_t m = 0; m < meshes; ++m) {
            if (std::find(bad.begin(), bad.end(), m) != bad.end()) EXPECT_EQ(ours.u[m * each], before[m * each]);
            else EXPECT_NE(ours.u[m * each], before[m * each]) << "other meshes have had their first step";
        }
    }
}

TEST_P(SweepsLarge, ASmallMeshThatFailsIsNamed) {
    Fields<double> ours({{64, 64, 64, 2}, odd, odd, odd, 0});
    const std::vector<double> before = ours.u;
    ours.u[static_cast<std::size_t>(((64 + 21) * 64 + 33) * 64 + 40)] = NAN;
    const SweepOutcome outcome = ours.run(queue, 3);
    EXPECT_EQ(outcome.reason, Reason::not_finite);
    EXPECT_EQ(outcome.failures, 5);
    EXPECT_EQ(outcome.step, 0);
    EXPECT_EQ(outcome.mesh, 1);
    EXPECT_EQ(outcome.y, 33);
    EXPECT_EQ(outcome.z, 20);
    EXPECT_NE(ours.u[0], before[0]) << "the other mesh has had its first step";
}

TEST_P(SweepsLarge, AMatrixThatNeedsPivotsGetsThem) {
    Fields<double> ours({{70, 301, 1, 2}, even, even, even, 1}), expected = ours;
    for (Fields<double>* fields : {&ours, &expected}) fields->sweeps[0].lines[1].constant = {1, 1e-9, 1}, fields->parameters = {0.1, 0.1, 0.1};
    ASSERT_TRUE(ours.run(queue, 1).ok());
    ASSERT_TRUE(expected.run(cpu, 1).ok());
    EXPECT_LE(largest_difference(ours.u, expected.u), 1e-10);
}

TRIFOLD_ON_EVERY_DEVICE(SweepsLarge);

}  // namespace
}  // namespace trifold::tests
