// SPDX-License-Identifier: BSD-3-Clause
// Sweeps that the cpu fuses into two passes or one: in every instruction set, on any number of threads, and where a value is not finite.
#include <hwy/highway.h>

#include <cmath>
#include <limits>
#include <vector>

#include "contract/tridiagonal/devices.hpp"
#include "support/largest_difference.hpp"
#include "support/random.hpp"

namespace trifold::tests {
namespace {

// Fields: 0 = u, 1 = v, 2 = the solution.
TRIFOLD_POINT_FUNCTION(flow, {
    real u = at(0, 0, 0, 0);
    out(0) = p(0) * ((at(0, -1, 0, 0) - u) + (at(0, 1, 0, 0) - u)) + p(1) * ((at(0, 0, -1, 0) - u) + (at(0, 0, 1, 0) - u)) +
             p(2) * ((at(0, 0, 0, -1) - u) + (at(0, 0, 0, 1) - u)) + p(0) * at(1, -2, 0, 0) * at(1, 0, 2, -2);
})
// Made in registers: a sum of neighbours.
TRIFOLD_POINT_FUNCTION(plain_flow, {
    real u = at(0, 0, 0, 0);
    out(0) = p(0) * ((at(0, -1, 0, 0) - u) - (u - at(0, 1, 0, 0))) + p(1) * (at(0, 0, -1, 0) - u) + p(2) * ((at(0, 0, 1, 0) - u) + (at(0, 0, 0, -1) - u)) + p(1) / 2 * (at(0, 0, 0, 1) - u);
})
TRIFOLD_POINT_FUNCTION(fed_flow, { out(0) = p(0) * (at(0, -1, 0, 0) + at(0, 1, 0, 0) - 2.5 * at(0, 0, 0, 0)) + p(1) * at(1, 0, 0, 0) + p(2) * (at(0, 0, 0, 1) - at(0, 0, 0, 0)); })
TRIFOLD_POINT_FUNCTION(sum, { out(0) = at(0, 0, 0, 0) + at(2, 0, 0, 0); })
TRIFOLD_POINT_FUNCTION(swapped_sum, {out(0) = at(2,0,0,0)  +  at(0,0,0,0);})
TRIFOLD_POINT_FUNCTION(damped, { out(0) = at(0, 0, 0, 0) + p(1) * at(2, 0, 0, 0) - p(0) * at(1, 0, 0, 0); })
TRIFOLD_POINT_FUNCTION(other_sum, { out(0) = at(1, 0, 0, 0) + at(2, 0, 0, 0); })

template <class T>
struct Meshes {
    MeshShape shape;
    std::vector<T> u, v;
    std::int64_t gap = 0;
    std::array<Sides, 3> sides{Sides{{Edge::odd, 0.4}, {Edge::even}}, Sides{{Edge::even}, {Edge::odd, -0.3}}, Sides{{Edge::odd, 0.1}, {Edge::even}}};
    PointFunction rhs = flow, update = sum;
    std::array<double, 3> along_z{-0.2, 1.4, -0.2};

    Meshes(const MeshShape& s, std::uint64_t seed, std::int64_t between_rows = 0) : shape(s), gap(between_rows) {
        Random random(seed);
        const std::int64_t count = (s.x + gap) * s.y * s.z * s.meshes;
        for (std::int64_t k = 0; k < count; ++k) u.push_back(static_cast<T>(random.uniform(-1, 1)));
        for (std::int64_t k = 0; k < s.points(); ++k) v.push_back(static_cast<T>(random.uniform(-1, 1)));
    }

    T& at(std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t mesh) { return u[static_cast<std::size_t>(((mesh * shape.z + z) * shape.y + y) * (shape.x + gap) + x)]; }

    SweepOutcome steps(Queue& queue, std::int64_t count) {
        const std::array<std::int64_t, 4> strides{1, shape.x + gap, (shape.x + gap) * shape.y, (shape.x + gap) * shape.y * shape.z};
        const AnyField fields[] = {Field<T>::strided(u.data(), strides, sides), Field<const T>::packed(v.data(), shape, sides)};
        Sweep sweep{rhs, {{0, {-0.3, 1.6, -0.3}}, {1, {-0.2, 1.5, -0.3}}}, update, 0, sides};
        for (Sides& axis : sweep.solution) axis.low.value = axis.high.value = 0;
        if (shape.z > 1) sweep.lines.push_back({2, along_z});
        const double parameters[] = {0.6, 0.5, 0.4};
        return trifold::sweep(queue, {shape, fields, std::span(&sweep, 1), parameters}, count);
    }
};

const MeshShape shapes[] = {{16, 16, 16, 1}, {17, 5, 3, 2}, {33, 40, 7, 1}, {100, 31, 4, 3}, {130, 9, 12, 1}, {64, 70, 5, 2}, {257, 33, 3, 1}, {15, 20, 6, 1}, {48, 35, 1, 3}, {129, 66, 1, 1}};

class SimdSweeps : public testing::TestWithParam<std::int64_t> {
protected:
    void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
    void TearDown() override { hwy::SetSupportedTargetsForTest(0); }

    template <class T>
    void compare(double allowed) {
        Queue cpu(context(), "cpu"), reference(context(), "reference");
        for (const MeshShape& shape : shapes)
            for (const PointFunction& update : {sum, swapped_sum, damped, other_sum, PointFunction{}}) {
                Meshes<T> ours(shape, 31, shape.y % 2 ? 0 : 5);
                ours.update = update;
                if (update.name == swapped_sum.name) ours.rhs = plain_flow;
                else if (!update) ours.rhs = fed_flow;
                else if (shape.z % 2 == 0) ours.rhs = {};
                Meshes<T> expected = ours;
                ASSERT_EQ(ours.steps(cpu, 2).reason, Reason::exact);
                ASSERT_EQ(expected.steps(reference, 2).reason, Reason::exact);
                ASSERT_LE(largest_difference(ours.u, expected.u), allowed) << shape.x << " x " << shape.y << " x " << shape.z << ", update " << (update ? update.name : "none");
            }
    }
};

TEST_P(SimdSweeps, AgreeWithTheReferenceF64) { compare<double>(2e-14); }
TEST_P(SimdSweeps, AgreeWithTheReferenceF32) { compare<float>(1e-5); }

INSTANTIATE_TEST_SUITE_P(Generated, SimdSweeps, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& info) { return std::string(hwy::TargetName(info.param)); });

TEST(FusedSweeps, BitsDoNotDependOnThreads) {
    // As many points as are worth three threads, in one mesh and in several.
    for (const MeshShape& shape : {MeshShape{64, 70, 45, 1}, {257, 33, 30, 1}, {500, 400, 1, 1}, {48, 35, 1, 120}, {40, 31, 40, 4}}) {
        Meshes<float> one(shape, 32);
        if (shape.x % 2 == 0) one.rhs = plain_flow;
        Meshes<float> many = one;
        Context alone({.threads = 1, .profile_path = "none", .log = {}}), three({.threads = 3, .profile_path = "none", .log = {}});
        Queue first(alone, "cpu"), second(three, "cpu");
        ASSERT_TRUE(one.steps(first, 3).ok());
        ASSERT_TRUE(many.steps(second, 3).ok());
        EXPECT_EQ(one.u, many.u) << shape.x << " x " << shape.y << " x " << shape.z;
    }
}

// Beyond the last level of caches (of most machines) w goes past them, and threads take strips in turns.
TEST(FusedSweeps, APlaneThatNoCacheHolds) {
    const MeshShape shape{3001, 1499, 1, 1};
    for (const PointFunction& update : {sum, damped}) {
        Meshes<float> one(shape, 36, 7);
        one.update = update;
        if (update.name == sum.name) one.rhs = plain_flow;
        Meshes<float> expected = one;
        const Meshes<float> start = one;
        Queue reference(context(), "reference");
        ASSERT_TRUE(expected.steps(reference, 1).ok());
        for (const int threads : {1, 2, 3}) {
            SCOPED_TRACE(std::to_string(threads) + " threads, update " + update.name);
            Context own({.threads = threads, .profile_path = "none", .log = {}});
            Queue queue(own, "cpu");
            Meshes<float> ours = start;
            ASSERT_TRUE(ours.steps(queue, 1).ok());
            if (threads == 1) one = ours;
            EXPECT_LE(largest_difference(ours.u, expected.u), 1e-5);
            EXPECT_TRUE(ours.u == one.u);
            ours = start;
            ours.at(1700, 801, 0, 0) = INFINITY;
            const std::vector<float> before = ours.u;
            const SweepOutcome outcome = ours.steps(queue, 1);
            EXPECT_EQ(outcome.reason, Reason::not_finite);
            EXPECT_EQ(outcome.axis, 0);
            EXPECT_TRUE(std::abs(outcome.y - 801) <= 2) << outcome.y;
            EXPECT_TRUE(ours.u == before);
        }
    }
}

// Fewer planes than threads, small enough for one thread each, and beyond that; with rings, one thing after the other.
TEST(FusedSweeps, FewPlanesByOneThreadEachOrByAll) {
    for (const bool rings : {false, true})
        for (const MeshShape shape : {MeshShape{611, 430, 1, 1}, {301, 222, 1, 3}, {1203, 1010, 1, 1}, {905, 806, 1, 2}}) {
            Meshes<double> one(shape, 38);
            one.rhs = plain_flow;
            if (rings) one.sides[1] = {{Edge::periodic}, {Edge::periodic}};
            const Meshes<double> start = one;
            for (const int threads : {1, 2, 3, 4, 7}) {
                SCOPED_TRACE(std::to_string(shape.x) + " x " + std::to_string(shape.y) + " x " + std::to_string(shape.meshes) + ", " + std::to_string(threads) + " threads");
                Context own({.threads = threads, .profile_path = "none", .log = {}});
                Queue queue(own, "cpu");
                Meshes<double> ours = start;
                ASSERT_TRUE(ours.steps(queue, 2).ok());
                if (threads == 1) one = ours;
                EXPECT_TRUE(ours.u == one.u);
                ours = start;
                ours.at(20, 11, 0, shape.meshes - 1) = INFINITY;
                EXPECT_EQ(ours.steps(queue, 1).reason, Reason::not_finite);
            }
        }
}

// Rings along z keep the planes' pass apart from the columns'.
TEST(FusedSweeps, FewLargePlanesWithRingsAcrossThem) {
    Meshes<float> one({2999, 1501, 3, 1}, 37);
    one.rhs = plain_flow;
    one.sides[2] = {{Edge::periodic}, {Edge::periodic}};
    Meshes<float> many = one;
    Context alone({.threads = 1, .profile_path = "none", .log = {}}), five({.threads = 5, .profile_path = "none", .log = {}});
    Queue first(alone, "cpu"), second(five, "cpu");
    ASSERT_TRUE(one.steps(first, 1).ok());
    ASSERT_TRUE(many.steps(second, 1).ok());
    EXPECT_TRUE(one.u == many.u);
}

TEST(FusedSweeps, ManyMeshesAreSingleOnesBitByBit) {
    const MeshShape shape{70, 21, 6, 5};
    Meshes<double> all(shape, 33);
    all.rhs = plain_flow;
    Queue cpu(context(), "cpu");
    std::vector<double> expected;
    const auto points = static_cast<std::ptrdiff_t>(shape.x * shape.y * shape.z);
    for (std::ptrdiff_t m = 0; m < shape.meshes; ++m) {
        Meshes<double> single = all;
        single.shape.meshes = 1;
        for (auto* values : {&single.u, &single.v}) *values = {values->begin() + m * points, values->begin() + (m + 1) * points};
        ASSERT_TRUE(single.steps(cpu, 3).ok());
        expected.insert(expected.end(), single.u.begin(), single.u.end());
    }
    ASSERT_TRUE(all.steps(cpu, 3).ok());
    EXPECT_EQ(all.u, expected);
}

TEST(FusedSweeps, AValueThatIsNotFiniteIsNamedAndItsMeshLeftAlone) {
    Queue cpu(context(), "cpu"), reference(context(), "reference");
    for (const std::int64_t depth : {7, 1, 6}) {
        const MeshShape shape{65, 19, depth, 3};
        Meshes<double> ours(shape, 34);
        if (depth == 6) ours.rhs = plain_flow;
        ours.at(40, 11, depth / 2, 1) = NAN;
        Meshes<double> expected = ours;
        const std::vector<double> before = ours.u;
        const SweepOutcome outcome = ours.steps(cpu, 3), right = expected.steps(reference, 3);
        EXPECT_EQ(outcome.reason, Reason::not_finite);
        EXPECT_EQ(outcome.step, 0);
        EXPECT_EQ(outcome.failures, right.failures);
        EXPECT_EQ(outcome.axis, 0);
        EXPECT_EQ(outcome.mesh, 1);
        EXPECT_EQ(outcome.y, right.y);
        EXPECT_EQ(outcome.z, right.z);
        const auto points = static_cast<std::ptrdiff_t>(shape.x * shape.y * shape.z);
        EXPECT_EQ(ours.u[static_cast<std::size_t>(points)], before[static_cast<std::size_t>(points)]);
        for (const std::ptrdiff_t m : {0, 2})
            for (std::ptrdiff_t k = m * points; k < (m + 1) * points; ++k)
                ASSERT_NEAR(ours.u[static_cast<std::size_t>(k)], expected.u[static_cast<std::size_t>(k)], 1e-13) << "the other meshes have had their first step";
    }
}

// Only the last line solve goes beyond the largest number: forwards, or not before it goes backwards.
TEST(FusedSweeps, AnOverflowAlongTheLastAxisIsNamed) {
    Queue cpu(context(), "cpu");
    for (const std::array<double, 3>& along_z : {std::array{0.0, 0.01, 0.0}, std::array{0.0, 1.0, -0.9}}) {
        Meshes<double> run({34, 18, 9, 2}, 35);
        run.rhs = {}, run.along_z = along_z;
        for (std::int64_t z = 1; z < 9; ++z) run.at(20, 10, z, 1) = std::numeric_limits<double>::max();
        const SweepOutcome outcome = run.steps(cpu, 2);
        EXPECT_EQ(outcome.reason, Reason::not_finite);
        EXPECT_EQ(outcome.axis, 2);
        EXPECT_EQ(outcome.mesh, 1);
        EXPECT_GE(outcome.failures, 1);
        EXPECT_EQ(outcome.step, 0);
        EXPECT_TRUE(std::isfinite(run.at(3, 3, 3, 0)));
    }
}

// Threads have rows of their own: what is named is what one thread names, in whosever rows it is.
TEST(FusedSweeps, AnOverflowIsNamedByThreadsAsByOne) {
    Context alone({.threads = 1, .profile_path = "none", .log = {}}), three({.threads = 3, .profile_path = "none", .log = {}});
    Queue first(alone, "cpu"), second(three, "cpu");
    for (const std::int64_t y : {3, 33, 69}) {
        Meshes<double> one({64, 70, 45, 1}, 36);
        one.rhs = {}, one.along_z = {0.0, 1.0, -0.9};
        for (std::int64_t z = 1; z < 45; ++z) one.at(20, y, z, 0) = std::numeric_limits<double>::max();
        Meshes<double> many = one;
        const SweepOutcome expected = one.steps(first, 2), outcome = many.steps(second, 2);
        EXPECT_EQ(expected.reason, Reason::not_finite);
        EXPECT_EQ(outcome.reason, expected.reason);
        EXPECT_EQ(outcome.failures, expected.failures);
        EXPECT_EQ(outcome.axis, expected.axis);
        EXPECT_EQ(outcome.x, expected.x);
        EXPECT_EQ(outcome.y, expected.y);
        EXPECT_EQ(outcome.z, expected.z);
    }
}

}  // namespace
}  // namespace trifold::tests
