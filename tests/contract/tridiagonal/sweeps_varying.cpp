// SPDX-License-Identifier: BSD-3-Clause
// Sweeps whose matrices vary from point to point over meshes that no chip holds, on GPUs, against the cpu.
#include <cmath>
#include <vector>

#include "contract/tridiagonal/sweeps_beside.hpp"
#include "support/random.hpp"

namespace trifold::tests {
namespace {

// Fields: 0 = u, 1 = conductivity, 2 = source, 3 = the solution.
TRIFOLD_POINT_FUNCTION(conduct, {
    real u = at(0, 0, 0, 0), k = at(1, 0, 0, 0);
    real west = at(1, -1, 0, 0), east = at(1, 1, 0, 0), south = at(1, 0, -1, 0), north = at(1, 0, 1, 0), below = at(1, 0, 0, -1), above = at(1, 0, 0, 1);
    out(0) = p(0) * (west * (k / (west + k)) * (at(0, -1, 0, 0) - u) + k * (east / (k + east)) * (at(0, 1, 0, 0) - u)) +
             p(1) * (south * (k / (south + k)) * (at(0, 0, -1, 0) - u) + k * (north / (k + north)) * (at(0, 0, 1, 0) - u)) +
             p(2) * (below * (k / (below + k)) * (at(0, 0, 0, -1) - u) + k * (above / (k + above)) * (at(0, 0, 0, 1) - u)) + p(3) * at(2, 0, 0, 0);
})
TRIFOLD_POINT_FUNCTION(conduct_flat, {
    real u = at(0, 0, 0, 0), k = at(1, 0, 0, 0);
    real west = at(1, -1, 0, 0), east = at(1, 1, 0, 0), south = at(1, 0, -1, 0), north = at(1, 0, 1, 0);
    out(0) = p(0) * (west * (k / (west + k)) * (at(0, -1, 0, 0) - u) + k * (east / (k + east)) * (at(0, 1, 0, 0) - u)) +
             p(1) * (south * (k / (south + k)) * (at(0, 0, -1, 0) - u) + k * (north / (k + north)) * (at(0, 0, 1, 0) - u)) + p(3) * at(2, 0, 0, 0);
})
// Nothing in it is kept; corners are looked at.
TRIFOLD_POINT_FUNCTION(mixed, {
    out(0) = at(0, 0, 0, 0) + p(0) * (at(1, 1, 0, 0) * at(0, 1, 1, 0) - at(1, 0, -1, 0) * at(0, -1, 0, -1)) + (x > 20 ? p(3) : p(0)) * at(2, 0, 0, 0);
})
TRIFOLD_POINT_FUNCTION(rows_x, {
    real k = at(1, 0, 0, 0), low = at(1, -1, 0, 0), high = at(1, 1, 0, 0);
    out(0) = -p(0) * (low * (k / (low + k)));
    out(2) = -p(0) * (k * (high / (k + high)));
    out(1) = 1 - out(0) - out(2);
})
TRIFOLD_POINT_FUNCTION(rows_y, {
    real k = at(1, 0, 0, 0), low = at(1, 0, -1, 0), high = at(1, 0, 1, 0);
    out(0) = -p(1) * (low * (k / (low + k)));
    out(2) = -p(1) * (k * (high / (k + high)));
    out(1) = 1 - out(0) - out(2);
})
TRIFOLD_POINT_FUNCTION(rows_z, {
    real k = at(1, 0, 0, 0), low = at(1, 0, 0, -1), high = at(1, 0, 0, 1);
    out(0) = -p(2) * (low * (k / (low + k)));
    out(2) = -p(2) * (k * (high / (k + high)));
    out(1) = 1 - out(0) - out(2);
})
TRIFOLD_POINT_FUNCTION(drifting_x, {
    real k = fmax(at(1, 0, 0, 0), real(0.2));
    out(0) = -p(0) * (k + real(0.3)) / (1 + k);
    out(2) = -p(0) * k / (1 + k);
    out(1) = k < 1 ? 1 - out(0) - out(2) : 2 - out(0) - out(2);
})
TRIFOLD_POINT_FUNCTION(add, { out(0) = at(0, 0, 0, 0) + at(3, 0, 0, 0); })

struct Case {
    MeshShape shape;
    Edge x, y, z;
    bool drifts;  // lines along x are not symmetric, and right-hand sides look at corners
    bool alike;   // meshes share their conductivity
    bool x_alone = false;  // no lines but those along x
};

constexpr Edge even = Edge::even, odd = Edge::odd, ring = Edge::periodic;

template <class T>
struct Fields {
    Case one;
    MeshShape shape;
    std::array<Sides, 3> sides, mirrored;
    std::vector<T> u, k, source;
    std::vector<Sweep> sweeps;
    std::vector<double> parameters{0.6, 0.5, 0.4, 0.1};

    explicit Fields(const Case& which) : one(which), shape(which.shape) {
        Random random(37);
        for (std::int64_t i = 0; i < shape.points(); ++i) u.push_back(static_cast<T>(random.uniform(-1, 1)));
        for (std::int64_t i = 0; i < shape.points() / (one.alike ? shape.meshes : 1); ++i) k.push_back(static_cast<T>(random.uniform(0.1, 3)));
        for (std::int64_t i = 0; i < shape.x; ++i) source.push_back(static_cast<T>(random.uniform(-1, 1)));
        const auto both = [](Edge edge, Side low, Side high) { return edge == Edge::periodic ? Sides{{edge}, {edge}} : Sides{low, high}; };
        sides = {both(one.x, {one.x, 0.3}, {one.x, -0.2}), both(one.y, {one.y, 0.1}, {even}), both(one.z, {even}, {one.z, 0.4})};
        for (std::size_t axis = 0; axis < 3; ++axis)
            if (sides[axis].low.edge == Edge::periodic) mirrored[axis] = sides[axis];
        const bool solid = shape.z > 1;
        std::vector<LineSolve> lines{{0, {}, one.drifts ? drifting_x : rows_x}, {1, {}, rows_y}};
        if (solid) lines.push_back({2, {}, rows_z});
        if (one.x_alone) lines.resize(1);
        sweeps = {{one.drifts ? mixed : solid ? conduct : conduct_flat, lines, add, 0, sides}};
    }

    void take(const Fields& all, std::int64_t mesh) {
        const auto each = shape.x * shape.y * shape.z, own = one.alike ? 0 : mesh * each;
        u.assign(all.u.begin() + mesh * each, all.u.begin() + (mesh + 1) * each);
        k.assign(all.k.begin() + own, all.k.begin() + own + each);
        source = all.source;
    }

    SweepOutcome run(Queue& queue, std::int64_t steps) {
        const AnyField fields[] = {Field<T>::packed(u.data(), shape, sides), Field<const T>::strided(k.data(), {1, shape.x, shape.x * shape.y, one.alike ? 0 : shape.x * shape.y * shape.z}, mirrored),
                                   Field<const T>::strided(source.data(), {1, 0, 0, 0})};
        return sweep(queue, {shape, fields, sweeps, parameters}, steps);
    }
};

// In passes that make their matrices, as large boxes do, rings among them; and such as keep them, or hold what meshes share.
const std::vector<Case> made = {{{256, 256, 130, 1}, odd, odd, odd, false, false}, {{256, 128, 256, 1}, ring, ring, ring, false, false}, {{192, 212, 208, 1}, even, odd, even, true, false}};
const std::vector<Case> kept = {{{256, 40, 17, 2}, odd, odd, even, true, true}, {{512, 700, 1, 1}, odd, odd, even, false, false}, {{256, 600, 1, 3}, ring, even, even, false, true},
                                {{100, 70, 65, 3}, odd, odd, odd, false, true}, {{97, 61, 53, 1}, ring, odd, even, true, false}, {{256, 64, 48, 2}, odd, odd, ring, false, true},
                                {{96, 67, 41, 5}, odd, odd, even, false, true}, {{48, 57, 50, 2}, ring, odd, odd, true, false}, {{512, 250, 1, 4}, even, odd, odd, true, true}};

class SweepsVarying : public OnCompilingGpu {};

TEST_P(SweepsVarying, MadeInRegistersAgreeWithTheCpuF64) { compare<Fields<double>>(made, 3, 2e-13); }
TEST_P(SweepsVarying, MadeInRegistersAgreeWithTheCpuF32) { compare<Fields<float>>(made, 3, 5e-5); }
TEST_P(SweepsVarying, KeptAgreeWithTheCpuF64) { compare<Fields<double>>(kept, 3, 2e-13); }
TEST_P(SweepsVarying, KeptAgreeWithTheCpuF32) { compare<Fields<float>>(kept, 3, 5e-5); }

TEST_P(SweepsVarying, LinesAlongXAlone) {
    compare<Fields<double>>(std::vector<Case>{{{256, 256, 130, 1}, odd, odd, odd, false, false, true}, {{96, 64, 41, 2}, odd, even, odd, false, true, true}, {{512, 250, 1, 3}, odd, odd, odd, false, true, true}}, 3, 2e-13);
}

TEST_P(SweepsVarying, AMeshHasTheBitsThatItHasInABatch) {
    for (const bool alike : {true, false}) {
        one_of_many<Fields<double>>(Case{{64, 64, 64, 4}, odd, even, odd, false, alike});
        one_of_many<Fields<float>>(Case{{512, 512, 1, 3}, odd, even, odd, false, alike});
        one_of_many<Fields<float>>(Case{{256, 256, 130, 2}, odd, even, odd, false, alike});
        one_of_many<Fields<double>>(Case{{256, 48, 64, 3}, ring, even, odd, true, alike});
    }
}

// Held from mesh to mesh, or made by warps that go along a mesh.
TEST_P(SweepsVarying, AMeshHasTheBitsThatItHasInABatchOfItsSize) {
    for (const bool alike : {true, false}) {
        one_of_many<Fields<double>>(Case{{96, 64, 41, 3}, odd, odd, even, false, alike});
        one_of_many<Fields<float>>(Case{{48, 57, 48, 5}, ring, odd, odd, true, alike});
        one_of_many<Fields<float>>(Case{{128, 40, 50, 3}, even, odd, ring, false, alike});
    }
}

// Divisors that are zero, and such as have no normal reciprocal: an answer, or the line and no answer, but no wrong number.
template <class T>
void strange_conductivity(Queue& queue, Queue& cpu, T strange) {
    Fields<T> ours({{256, 256, 130, 1}, odd, odd, odd, false, false});
    ours.k[256 * (256 * 7 + 5) + 100] = strange;
    Fields<T> expected = ours;
    const SweepOutcome outcome = ours.run(queue, 2), truth = expected.run(cpu, 2);
    if (outcome.reason != Reason::exact) {
        EXPECT_NE(outcome.failures, 0);
        for (const T value : ours.u) ASSERT_TRUE(std::isfinite(value)) << static_cast<double>(strange);
        return;
    }
    ASSERT_TRUE(truth.ok()) << static_cast<double>(strange);
    for (std::size_t i = 0; i < ours.u.size(); ++i) ASSERT_NEAR(ours.u[i], expected.u[i], sizeof(T) == 8 ? 1e-12 : 1e-3) << i << ": " << static_cast<double>(strange);
}

TEST_P(SweepsVarying, StrangeDivisors) {
    for (const double strange : {0.0, double(INFINITY), 1e-310, 5e307}) strange_conductivity<double>(queue, cpu, strange);
    for (const float strange : {0.f, float(NAN), 1e-40f, 3.4e38f}) strange_conductivity<float>(queue, cpu, strange);
}

TRIFOLD_ON_EVERY_DEVICE(SweepsVarying);

}  // namespace
}  // namespace trifold::tests
