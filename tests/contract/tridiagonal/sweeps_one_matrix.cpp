// SPDX-License-Identifier: BSD-3-Clause
// Sweeps with one matrix for all lines of a solve, on meshes of the sizes that devices keep on chip, against the reference.
#include <algorithm>
#include <cmath>
#include <vector>

#include "contract/tridiagonal/devices.hpp"
#include "support/largest_difference.hpp"
#include "support/random.hpp"

namespace trifold::tests {
namespace {

// Fields: 0 = u, 1 = v.
TRIFOLD_POINT_FUNCTION(spread, {
    real u = at(0, 0, 0, 0);
    out(0) = p(0) * ((at(0, -1, 0, 0) - u) + (at(0, 1, 0, 0) - u)) + p(1) * ((at(0, 0, -1, 0) - u) + (at(0, 0, 1, 0) - u)) +
             p(2) * ((at(0, 0, 0, -1) - u) + (at(0, 0, 0, 1) - u));
})
TRIFOLD_POINT_FUNCTION(spread_flat, {
    real u = at(0, 0, 0, 0);
    out(0) = p(0) * ((at(0, -1, 0, 0) - u) + (at(0, 1, 0, 0) - u)) + p(1) * ((at(0, 0, -1, 0) - u) + (at(0, 0, 1, 0) - u));
})
TRIFOLD_POINT_FUNCTION(react, { out(0) = at(0, 0, 0, 0) + p(3) * (at(0, 0, 0, 0) - at(1, 0, 0, 0) * at(1, 1, -1, 0)); })
TRIFOLD_POINT_FUNCTION(spread_v, { out(0) = at(1, 0, 0, 0) + p(3) * (at(0, 0, 0, 0) - at(1, 0, 0, 0) + at(1, 0, 2, 0) - at(1, 0, -2, 0)); })
TRIFOLD_POINT_FUNCTION(grow, { out(0) = at(0, 0, 0, 0) + at(2, 0, 0, 0); })
TRIFOLD_POINT_FUNCTION(stretched, {
    out(0) = -real(0.3) / (1 + real(y));
    out(2) = -real(0.2) / (2 + real(y));
    out(1) = 1 - out(0) - out(2);
})

struct Case {
    MeshShape shape;
    Edge edge;
    bool two_fields;
};

template <class T>
struct Fields {
    MeshShape shape;
    std::array<Sides, 3> sides, plain;
    std::vector<T> u, v;
    std::vector<Sweep> sweeps;
    std::vector<double> parameters{0.6, 0.5, 0.4, 0.1};

    Fields(const Case& one, std::uint64_t seed) : shape(one.shape) {
        Random random(seed);
        for (std::vector<T>* values : {&u, &v})
            for (std::int64_t k = 0; k < shape.points(); ++k) values->push_back(static_cast<T>(random.uniform(-1, 1)));
        for (std::size_t axis = 0; axis < 3; ++axis) sides[axis] = {{one.edge, 0.3}, {one.edge == Edge::odd && axis == 1 ? Edge::even : one.edge, -0.2}};
        plain = sides;
        for (Sides& axis : plain) axis.low.value = axis.high.value = 0;
        const LineSolve x{0, {-0.3, 1.6, -0.3}}, y{1, {-0.2, 1.5, -0.3}}, z{2, {-0.2, 1.4, -0.2}};
        if (one.two_fields) sweeps = {{react, {y}, {}, 0, sides}, {spread_v, {{1, {}, stretched, true}, x, y}, {}, 1, sides}};
        else if (shape.z > 1) sweeps = {{spread, {x, y, z}, grow, 0, plain}};
        else sweeps = {{spread_flat, {x, y}, grow, 0, plain}};
    }

    SweepOutcome run(Queue& queue, std::int64_t steps) {
        const AnyField fields[] = {Field<T>::packed(u.data(), shape, sides), Field<T>::packed(v.data(), shape, sides)};
        return sweep(queue, {shape, fields, sweeps, parameters}, steps);
    }
};

class SweepsOneMatrix : public OnMeshDevice {
protected:
    template <class T>
    void compare(const std::vector<Case>& cases, double allowed) {
        if (GetParam() == "reference") GTEST_SKIP() << "what others are compared with";
        Queue reference(context(), "reference");
        for (const Case& one : cases) {
            Fields<T> ours(one, 21), expected(one, 21);
            const SweepOutcome outcome = ours.run(queue, 3);
            ASSERT_EQ(outcome.reason, Reason::exact);
            ASSERT_EQ(outcome.failures, 0);
            ASSERT_TRUE(expected.run(reference, 3).ok());
            ASSERT_LE(std::max(largest_difference(ours.u, expected.u), largest_difference(ours.v, expected.v)), allowed) << one.shape.x << " x " << one.shape.y << " x " << one.shape.z;
        }
    }
};

TEST_P(SweepsOneMatrix, AgreeWithTheReferenceF64) {
    compare<double>({{{100, 77, 1, 3}, Edge::odd, false}, {{128, 128, 1, 2}, Edge::even, false}, {{130, 140, 1, 2}, Edge::periodic, false}, {{61, 90, 1, 2}, Edge::odd, true},
                     {{250, 200, 1, 2}, Edge::periodic, true}, {{320, 250, 1, 1}, Edge::odd, false}, {{32, 32, 32, 2}, Edge::odd, false}, {{31, 17, 40, 2}, Edge::periodic, false},
                     {{48, 40, 48, 1}, Edge::even, false}},
                    1e-13);
}

TEST_P(SweepsOneMatrix, AgreeWithTheReferenceF32) {
    compare<float>({{{33, 30, 1, 5}, Edge::odd, false}, {{128, 128, 1, 2}, Edge::even, false}, {{300, 384, 1, 1}, Edge::odd, false}, {{48, 48, 48, 1}, Edge::odd, false},
                    {{80, 32, 32, 1}, Edge::periodic, false}},
                   1e-5);
}

TEST_P(SweepsOneMatrix, ManyMeshesAreSingleOnesBitByBit) {
    for (const MeshShape& shape : {MeshShape{64, 48, 1, 300}, MeshShape{32, 32, 32, 20}}) {
        const Case one{shape, Edge::odd, false};
        Fields<float> all(one, 22);
        const std::vector<float> before = all.u;
        ASSERT_TRUE(all.run(queue, 4).ok());
        const auto points = static_cast<std::ptrdiff_t>(shape.x * shape.y * shape.z);
        for (const std::ptrdiff_t mesh : {std::ptrdiff_t{0}, static_cast<std::ptrdiff_t>(shape.meshes - 1)}) {
            Fields<float> single({{shape.x, shape.y, shape.z, 1}, Edge::odd, false}, 22);
            single.u.assign(before.begin() + mesh * points, before.begin() + (mesh + 1) * points);
            ASSERT_TRUE(single.run(queue, 4).ok());
            EXPECT_TRUE(std::equal(single.u.begin(), single.u.end(), all.u.begin() + mesh * points)) << "mesh " << mesh;
        }
    }
}

TEST_P(SweepsOneMatrix, AValueThatIsNotFiniteIsNoticed) {
    const Case one{{40, 36, 1, 4}, Edge::odd, false};
    Fields<double> ours(one, 23);
    const std::size_t points = 40 * 36, at = 2 * points + 5 * 40 + 7;
    ours.u[at] = INFINITY;
    const std::vector<double> before = ours.u;
    const SweepOutcome outcome = ours.run(queue, 3);
    EXPECT_EQ(outcome.reason, Reason::not_finite);
    EXPECT_EQ(outcome.step, 0);
    EXPECT_EQ(outcome.sweep, 0);
    EXPECT_EQ(outcome.mesh, 2);
    EXPECT_GE(outcome.failures, 1);
    EXPECT_NE(ours.u[0], before[0]) << "the other meshes go on";
    EXPECT_TRUE(std::isfinite(ours.u[0]));
    EXPECT_EQ(ours.u[2 * points], before[2 * points]);
}

TRIFOLD_ON_EVERY_DEVICE(SweepsOneMatrix);

}  // namespace
}  // namespace trifold::tests
