// SPDX-License-Identifier: BSD-3-Clause
// Heat in boxes whose planes fit on one multiprocessor of a GPU, or on a few: many of them take one pass over memory per step there, a few take others,
// with the same bits. What is no GPU gets small ones: those sizes mean nothing to it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "contract/tridiagonal/devices.hpp"
#include "heat/stencils.hpp"
#include "support/largest_difference.hpp"
#include "support/random.hpp"

namespace trifold::tests {
namespace {

constexpr Edge even = Edge::even, odd = Edge::odd;

// As increment_3d; what is divided by is zero at one point of mesh p(4) in step p(5).
TRIFOLD_POINT_FUNCTION(increment_3d_until, {
    real u = at(0, 0, 0, 0);
    real divisor = mesh == p(4) && step == p(5) && x == 40 && y == 33 && z == 21 ? real(0) : real(1);
    out(0) = (p(0) * ((at(0, -1, 0, 0) - u) - (u - at(0, 1, 0, 0))) + p(1) * ((at(0, 0, -1, 0) - u) - (u - at(0, 0, 1, 0))) + p(2) * ((at(0, 0, 0, -1) - u) - (u - at(0, 0, 0, 1)))) / divisor;
})

/// Sides of z. Where they differ, its matrix is not its own mirror image, and other kernels take it.
struct Ends {
    Edge low, high;
    const char* name;
};
constexpr Ends ends[] = {{odd, odd, "odd sides"}, {even, even, "even sides"}, {odd, even, "an odd and an even side"}};

template <class T>
struct Boxes {
    MeshShape shape;
    Ends z;
    std::array<Sides, 3> sides, plain;
    std::vector<T> u, nothing;
    std::vector<Sweep> sweeps;
    std::vector<double> parameters{0.6, 0.5, 0.4, 1};

    Boxes(int nx, int ny, std::int64_t height, std::int64_t meshes, const Ends& of_z) : shape{nx, ny, height, meshes}, z(of_z), u(static_cast<std::size_t>(shape.points())), nothing(static_cast<std::size_t>(nx)) {
        sides = {Sides{{odd, 0.3}, {even}}, Sides{{odd, 0.1}, {odd, -0.2}}, Sides{{z.low, z.low == odd ? 0.2 : 0}, {z.high, z.high == odd ? 0.4 : 0}}};
        plain = sides;
        for (Sides& axis : plain) axis.low.value = axis.high.value = 0;
        const auto line = [&](int axis) { return LineSolve{axis, {-parameters[static_cast<std::size_t>(axis)] / 2, 1 + parameters[static_cast<std::size_t>(axis)], -parameters[static_cast<std::size_t>(axis)] / 2}}; };
        sweeps = {{heat::increment_3d, {line(0), line(1), line(2)}, heat::add_increment, 0, plain}};
    }

    void fill(Random& random) {
        for (T& value : u) value = static_cast<T>(random.uniform(-1, 1));
    }

    std::size_t each() const { return static_cast<std::size_t>(shape.x * shape.y * shape.z); }
    std::size_t at(std::int64_t mesh, std::int64_t x, std::int64_t y, std::int64_t z) const { return static_cast<std::size_t>(((mesh * shape.z + z) * shape.y + y) * shape.x + x); }

    /// One of them, alone.
    Boxes alone(std::int64_t mesh) const {
        Boxes one(static_cast<int>(shape.x), static_cast<int>(shape.y), shape.z, 1, z);
        one.parameters = parameters;
        one.sweeps = sweeps;
        std::copy_n(u.begin() + mesh * static_cast<std::ptrdiff_t>(each()), each(), one.u.begin());
        return one;
    }

    /// Of the largest value.
    double off(const Boxes& other) const {
        double largest = 0;
        for (const T value : other.u) largest = std::max(largest, std::abs(static_cast<double>(value)));
        return largest_difference(u, other.u) / largest;
    }

    bool has_bits_of(const Boxes& other) const { return std::memcmp(u.data(), other.u.data(), u.size() * sizeof(T)) == 0; }

    SweepOutcome run(Queue& queue, std::int64_t steps, std::int64_t first_step = 0) {
        const AnyField unread = Field<const T>::strided(nothing.data(), {1, 0, 0, 0}), fields[] = {Field<T>::packed(u.data(), shape, sides), unread, unread};
        return sweep(queue, {shape, fields, sweeps, parameters}, steps, {.first_step = first_step});
    }
};

class Planes : public NotTheReference {
protected:
    Queue reference{context(), "reference"};
    std::uint64_t seed = std::random_device{}();
    Random random{seed};
    static constexpr std::int64_t few = 3;

    void SetUp() override {
        NotTheReference::SetUp();
        std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
    }

    /// How many at once: a few, and, where more are named, so many that a GPU makes a step one pass.
    static std::vector<std::int64_t> batches(std::int64_t many) {
        if (many == few) return {few};
        return {few, many};
    }

    template <class T>
    void compare(int nx, int ny, std::int64_t height, std::int64_t many) {
        for (const std::int64_t meshes : batches(many))
            for (const Ends& z : ends) {
                SCOPED_TRACE(std::to_string(meshes) + " with " + z.name);
                Boxes<T> all(nx, ny, height, meshes, z);
                all.fill(random);
                const Boxes<T> before = all;
                ASSERT_EQ(all.run(queue, 5).reason, Reason::exact);
                // From an even step on, and from an odd one.
                for (const std::int64_t first : {2, 3}) {
                    Boxes<T> again = before;
                    ASSERT_TRUE(again.run(queue, first).ok());
                    ASSERT_TRUE(again.run(queue, 5 - first, first).ok());
                    EXPECT_TRUE(again.has_bits_of(all)) << first << " and " << 5 - first << " steps are not 5";
                }
                for (const std::int64_t mesh : {std::int64_t{0}, meshes - 1}) {
                    Boxes<T> one = before.alone(mesh);
                    ASSERT_TRUE(one.run(queue, 5).ok());
                    EXPECT_TRUE(one.has_bits_of(all.alone(mesh))) << "mesh " << mesh << " has other bits alone";
                }
                Boxes<T> expected = before.alone(meshes - 1);
                ASSERT_TRUE(expected.run(reference, 5).ok());
                EXPECT_LE(all.alone(meshes - 1).off(expected), 40 * std::numeric_limits<T>::epsilon());
            }
    }

    /// A mesh spoils some of its lines; the others have had that step, and no more.
    template <class T>
    void fail(int nx, int ny, std::int64_t many) {
        struct Bad {
            T value;
            std::int64_t first_step;
        };
        constexpr Bad bad[] = {{std::numeric_limits<T>::quiet_NaN(), 0}, {std::numeric_limits<T>::infinity(), 1}, {-std::numeric_limits<T>::infinity(), 6}};
        for (const std::int64_t meshes : batches(many))
            for (std::size_t k = 0; k < std::size(ends); ++k) {
                SCOPED_TRACE(std::to_string(meshes) + " with " + ends[k].name);
                Boxes<T> all(nx, ny, ny, meshes, ends[k]);
                all.fill(random);
                spoil(all, static_cast<std::int64_t>(k) * (meshes - 1) / 2, bad[k].value, bad[k].first_step, 5);
                // A line along z alone: one value is so large that its line's solution is not a number any more.
                all.sweeps[0].lines[2].constant = {-0.2e-4, 1.4e-4, -0.2e-4};
                constexpr T large = std::numeric_limits<T>::max() * T(2.6e-4);
                spoil(all, meshes - 1, large, 1, 1);
                if (meshes > few) spoil(all, 0, large, 0, 1);
                // The same along y, whose lines come after those along z where a step is one pass.
                std::swap(all.sweeps[0].lines[1].constant, all.sweeps[0].lines[2].constant);
                for (const std::int64_t first_step : {0, 1}) spoil(all, meshes - 1 - first_step, large * T(0.7), first_step, 1);
            }
    }

    /// A line fails in a later step, while other groups of meshes may be ahead or behind: all others have had that step, and no more.
    template <class T>
    void fail_late(int n, std::int64_t many) {
        for (const std::int64_t step : {2, 3})
            for (const std::int64_t bad : {std::int64_t{0}, many / 2, many - 1}) {
                SCOPED_TRACE("mesh " + std::to_string(bad) + " in step " + std::to_string(step));
                Boxes<T> ours(n, n, n, many, ends[0]);
                ours.fill(random);
                ours.sweeps[0].rhs = increment_3d_until;
                ours.parameters = {0.6, 0.5, 0.4, 1, static_cast<double>(bad), static_cast<double>(step)};
                Boxes<T> healthy = ours;
                healthy.parameters[4] = -1;
                ASSERT_TRUE(healthy.run(queue, step + 1).ok());
                const SweepOutcome outcome = ours.run(queue, 9);
                EXPECT_EQ(outcome.reason, Reason::not_finite);
                EXPECT_EQ(std::tuple(outcome.failures, outcome.mesh, outcome.step, outcome.axis, outcome.y, outcome.z), std::tuple(1, bad, step, 0, 33, 21));
                for (std::int64_t mesh = 0; mesh < many; ++mesh) {
                    if (mesh == bad) continue;
                    EXPECT_LE(ours.alone(mesh).off(healthy.alone(mesh)), 1e-6) << "mesh " << mesh;
                }
            }
    }

private:
    template <class T>
    void spoil(const Boxes<T>& all, std::int64_t bad, T value, std::int64_t first_step, std::int64_t failures) {
        Boxes<T> healthy = all, ours = all;
        ASSERT_TRUE(healthy.run(queue, 1, first_step).ok());
        ours.u[ours.at(bad, 40, 33, 21)] = value;
        Boxes<T> alone = ours.alone(bad);
        const SweepOutcome outcome = ours.run(queue, 3, first_step), right = alone.run(reference, 3, first_step);
        EXPECT_EQ(outcome.reason, Reason::not_finite);
        EXPECT_EQ(outcome.failures, failures);
        EXPECT_EQ(outcome.failures, right.failures);
        EXPECT_EQ(outcome.mesh, bad);
        EXPECT_EQ(outcome.step, right.step);
        EXPECT_EQ(outcome.axis, right.axis);
        // Where along its line is no promise.
        EXPECT_TRUE(right.axis == 0 || outcome.x == right.x) << outcome.x << ", not " << right.x;
        EXPECT_TRUE(right.axis == 1 || outcome.y == right.y) << outcome.y << ", not " << right.y;
        EXPECT_TRUE(right.axis == 2 || outcome.z == right.z) << outcome.z << ", not " << right.z;
        for (std::int64_t mesh = 0; mesh < ours.shape.meshes; ++mesh) {
            if (mesh == bad) continue;
            EXPECT_LE(ours.alone(mesh).off(healthy.alone(mesh)), 1e-6) << "mesh " << mesh << " beside " << bad;
        }
    }
};

class SweepsPlanes : public Planes {
protected:
    void SetUp() override {
        if (!GetParam().starts_with("cuda:")) GTEST_SKIP() << "sizes for the multiprocessors of a GPU; others have small boxes";
        Planes::SetUp();
    }
};

TEST_P(SweepsPlanes, BoxesOf80) { compare<float>(80, 80, 80, 16); }
TEST_P(SweepsPlanes, BoxesOf96) { compare<float>(96, 96, 96, 24); }
TEST_P(SweepsPlanes, AFewBoxesOf96OnTwiceAsManyMultiprocessors) { compare<float>(96, 96, 96, 10); }
TEST_P(SweepsPlanes, BoxesOf64InDoubles) { compare<double>(64, 64, 64, 40); }
TEST_P(SweepsPlanes, AFewBoxesOf64InDoublesOnTwiceAsManyMultiprocessors) { compare<double>(64, 64, 64, 12); }
TEST_P(SweepsPlanes, BoxesOf128OnSeveralMultiprocessors) { compare<float>(128, 128, 48, 20); }
TEST_P(SweepsPlanes, BoxesOf80InDoublesOnSeveralMultiprocessors) { compare<double>(80, 80, 80, 9); }
// Some warps have columns alone, or rows alone; on one multiprocessor, and on two.
TEST_P(SweepsPlanes, BoxesOfUnequalSides) { compare<float>(96, 80, 80, 30), compare<float>(80, 96, 48, 40), compare<float>(112, 64, 64, 24); }
TEST_P(SweepsPlanes, BoxesOfUnequalSidesOnSeveralMultiprocessors) { compare<float>(96, 128, 48, 20), compare<float>(128, 112, 48, 20), compare<float>(112, 112, 100, 8); }
TEST_P(SweepsPlanes, BoxesOfUnequalSidesInDoubles) { compare<double>(80, 64, 64, 24), compare<double>(64, 96, 64, 12), compare<double>(96, 80, 60, 12), compare<double>(64, 80, 100, 20); }
TEST_P(SweepsPlanes, BoxesOfOtherHeights) { compare<float>(80, 80, 28, 70), compare<float>(96, 96, 60, 25); }
TEST_P(SweepsPlanes, ABoxOf80ThatFailsIsNamed) { fail<float>(80, 80, 16); }
TEST_P(SweepsPlanes, ABoxOf96ThatFailsIsNamed) { fail<float>(96, 96, 24); }
TEST_P(SweepsPlanes, ABoxOf64InDoublesThatFailsIsNamed) { fail<double>(64, 64, 40); }
TEST_P(SweepsPlanes, ABoxOnSeveralMultiprocessorsThatFailsIsNamed) { fail<float>(128, 128, 10); }
TEST_P(SweepsPlanes, ABoxOfUnequalSidesThatFailsIsNamed) { fail<float>(96, 80, 20), fail<double>(80, 64, 12), fail<double>(64, 96, 12); }
TEST_P(SweepsPlanes, ABoxThatFailsLaterIsNamed) {
    for (const std::int64_t many : {3, 20, 40}) fail_late<float>(80, many);
    fail_late<float>(128, 10), fail_late<double>(64, 40);
}

TRIFOLD_ON_EVERY_DEVICE(SweepsPlanes);

class SweepsSmallBoxes : public Planes {
protected:
    void SetUp() override {
        if (GetParam().starts_with("cuda:")) GTEST_SKIP() << "GPUs have boxes of their own";
        Planes::SetUp();
    }
};

TEST_P(SweepsSmallBoxes, AgreeWithTheReference) { compare<float>(48, 40, 28, few), compare<double>(48, 44, 24, few); }
TEST_P(SweepsSmallBoxes, OneThatFailsIsNamed) { fail<float>(48, 40, few), fail<double>(44, 36, few); }
TEST_P(SweepsSmallBoxes, OneThatFailsLaterIsNamed) { fail_late<float>(48, few), fail_late<double>(44, few); }

TRIFOLD_ON_EVERY_DEVICE(SweepsSmallBoxes);

}  // namespace
}  // namespace trifold::tests
