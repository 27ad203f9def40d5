// SPDX-License-Identifier: BSD-3-Clause
// Right-hand sides that the cpu makes in registers since they are sums of a point's neighbours: every number its own, sides with values, rows of any length and far apart; and
// sums that look alike and are none of these. Against the reference.
#include <cmath>
#include <vector>

#include "contract/tridiagonal/devices.hpp"
#include "support/random.hpp"

namespace trifold::tests {
namespace {

// Fields: 0 = the target, 1 = another one, in rows that are further apart.
TRIFOLD_POINT_FUNCTION(lopsided, {
    real u = at(1, 0, 0, 0);
    real along_x = p(0) * (at(1, -1, 0, 0) - u) + p(1) * (at(1, 1, 0, 0) - u), along_y = p(2) * (at(1, 0, -1, 0) - u) + p(3) * (at(1, 0, 1, 0) - u);
    out(0) = along_x + along_y + p(4) * (at(1, 0, 0, -1) - u) - (u - at(1, 0, 0, 1)) / p(5);
})
TRIFOLD_POINT_FUNCTION(of_itself, {
    real u = at(0, 0, 0, 0);
    out(0) = p(0) * (at(0, -1, 0, 0) + at(0, 1, 0, 0) - 2 * u) + p(2) * (at(0, 0, -1, 0) - 2 * u + at(0, 0, 1, 0));
})
// With a part of the point's own, and of the other field's.
TRIFOLD_POINT_FUNCTION(fed, {
    real v = at(1, 0, 0, 0);
    out(0) = p(0) * (at(1, -1, 0, 0) + at(1, 1, 0, 0)) + p(2) * (at(1, 0, 0, -1) + at(1, 0, 1, 0)) - 1.25 * v + p(3) * at(0, 0, 0, 0);
})
TRIFOLD_POINT_FUNCTION(upwind, { out(0) = p(1) * (at(0, 0, -1, 0) - at(0, 0, 0, 0)); })
// The point has no part; a corner; two points away; the other field away from the point.
TRIFOLD_POINT_FUNCTION(growing, { out(0) = p(0) * (at(0, -1, 0, 0) + at(0, 1, 0, 0)); })
TRIFOLD_POINT_FUNCTION(corner, { out(0) = p(0) * (at(0, -1, 1, 0) - at(0, 0, 0, 0)); })
TRIFOLD_POINT_FUNCTION(far_away, { out(0) = p(0) * (at(0, 2, 0, 0) - at(0, 0, 0, 0)); })
TRIFOLD_POINT_FUNCTION(mixed_up, { out(0) = p(0) * (at(0, 1, 0, 0) - at(0, 0, 0, 0)) + p(1) * at(1, 0, 1, 0); })
TRIFOLD_POINT_FUNCTION(grown, { out(0) = at(0, 0, 0, 0) + at(2, 0, 0, 0); })

template <class T>
struct Fields {
    MeshShape shape;
    std::array<Sides, 3> sides;
    std::array<std::int64_t, 4> apart;
    std::vector<T> u, v;
    std::vector<double> parameters{0.3, 0.2, 0.25, 0.15, 0.1, 7};

    Fields(const MeshShape& mesh, const std::array<Sides, 3>& edges) : shape(mesh), sides(edges) {
        Random random(31);
        apart = {1, shape.x + 3, (shape.x + 3) * shape.y + 5, ((shape.x + 3) * shape.y + 5) * shape.z};
        for (std::int64_t k = 0; k < shape.points(); ++k) u.push_back(static_cast<T>(random.uniform(-1, 1)));
        // What lies between rows is no value.
        v.assign(static_cast<std::size_t>(apart[3] * shape.meshes), T(NAN));
        for (std::int64_t k = 0; k < shape.points(); ++k)
            v[static_cast<std::size_t>(k % shape.x + k / shape.x % shape.y * apart[1] + k / (shape.x * shape.y) % shape.z * apart[2] + k / (shape.x * shape.y * shape.z) * apart[3])] =
                static_cast<T>(random.uniform(-1, 1));
    }

    SweepOutcome run(Queue& queue, const PointFunction& rhs, std::int64_t steps) {
        std::array<Sides, 3> plain = sides;
        for (Sides& axis : plain) axis.low.value = axis.high.value = 0;
        std::vector<LineSolve> lines{{0, {-0.3, 1.6, -0.2}}, {1, {-0.2, 1.5, -0.3}}};
        if (shape.z > 1) lines.push_back({2, {-0.2, 1.4, -0.1}});
        const AnyField fields[] = {Field<T>::packed(u.data(), shape, sides), Field<const T>::strided(v.data(), apart, sides)};
        const std::vector<Sweep> sweeps{{rhs, lines, grown, 0, plain}};
        return sweep(queue, {shape, fields, sweeps, parameters}, steps);
    }
};

class SweepsStar : public OnMeshDevice {
protected:
    void SetUp() override {
        if (GetParam() != "cpu") GTEST_SKIP() << GetParam() << " has no way of its own for them";
    }

    template <class T>
    void compare(double allowed) {
        Queue reference(context(), "reference");
        const auto both = [](Edge edge, double low, double high) { return Sides{{edge, low}, {edge, high}}; };
        const std::array<Sides, 3> fixed{both(Edge::odd, 0.5, -0.25), both(Edge::odd, 1, 2), both(Edge::odd, -1, 0.5)}, insulated{both(Edge::even, 0, 0), both(Edge::even, 0, 0), both(Edge::even, 0, 0)},
            mixed{Sides{{Edge::even, 0}, {Edge::odd, 0.75}}, Sides{{Edge::odd, -0.5}, {Edge::even, 0}}, Sides{{Edge::odd, 2}, {Edge::even, 0}}},
            rings{both(Edge::odd, 0.5, -0.25), both(Edge::periodic, 0, 0), both(Edge::periodic, 0, 0)}, all_rings{both(Edge::periodic, 0, 0), both(Edge::periodic, 0, 0), both(Edge::periodic, 0, 0)};
        for (const MeshShape& shape : {MeshShape{32, 20, 5, 2}, MeshShape{33, 16, 4, 1}, MeshShape{47, 19, 3, 2}, MeshShape{64, 3, 3, 1}, MeshShape{100, 35, 6, 1}, MeshShape{48, 33, 1, 3}, MeshShape{63, 17, 1, 2},
                                       MeshShape{31, 9, 3, 2}, MeshShape{16, 8, 1, 2}})
            for (const auto& sides : {fixed, insulated, mixed, rings, all_rings})
                for (const PointFunction& rhs : {lopsided, of_itself, fed, upwind, growing, corner, far_away, mixed_up}) {
                    Fields<T> ours(shape, sides), expected(shape, sides);
                    ASSERT_EQ(ours.run(queue, rhs, 2).reason, Reason::exact);
                    ASSERT_TRUE(expected.run(reference, rhs, 2).ok());
                    double off = 0;
                    for (std::size_t k = 0; k < ours.u.size(); ++k) {
                        const double difference = std::abs(double(ours.u[k]) - double(expected.u[k]));
                        off = difference <= off ? off : std::isfinite(difference) ? difference : INFINITY;
                    }
                    ASSERT_LE(off, allowed) << rhs.name << ", " << shape.x << " x " << shape.y << " x " << shape.z;
                }
    }
};

TEST_P(SweepsStar, AgreeWithTheReferenceF64) { compare<double>(1e-13); }
TEST_P(SweepsStar, AgreeWithTheReferenceF32) { compare<float>(2e-5); }

TRIFOLD_ON_EVERY_DEVICE(SweepsStar);

}  // namespace
}  // namespace trifold::tests
