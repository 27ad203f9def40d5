// SPDX-License-Identifier: BSD-3-Clause
// The heat equation: eigenmodes of every kind of side, orders in space and time, direct solves of the split and the unsplit equation, conservation.
#include "heat/heat.hpp"

#include <lapacke.h>

#include <cmath>
#include <functional>
#include <numbers>

#include "contract/tridiagonal/devices.hpp"
#include "heat/parts.hpp"
#include "support/random.hpp"

namespace trifold::heat {
namespace {

using tests::context;
using std::numbers::pi;

constexpr Side fixed{Edge::odd, 0}, insulated{Edge::even, 0}, around{Edge::periodic, 0};
constexpr Sides kinds[] = {{fixed, fixed}, {insulated, insulated}, {fixed, insulated}, {insulated, fixed}, {around, around}};

// Mode m of n cells between sides of these kinds, and its eigenvalue times spacing².
struct Mode {
    std::function<double(double)> shape;  // of the place, 0 to 1
    double wave;                          // radians over the whole length

    Mode(const Sides& sides, int m) {
        const bool low = sides.low.edge == Edge::odd, high = sides.high.edge == Edge::odd;
        if (sides.low.edge == Edge::periodic) wave = 2 * pi * m, shape = [w = wave](double x) { return std::cos(w * x); };
        else if (low) wave = pi * (high ? m : m - 0.5), shape = [w = wave](double x) { return std::sin(w * x); };
        else wave = pi * (high ? m - 0.5 : m), shape = [w = wave](double x) { return std::cos(w * x); };
    }
    double eigenvalue(std::int64_t n) const {
        const double s = std::sin(wave / (2 * static_cast<double>(n)));
        return -4 * s * s;
    }
};

double centre(std::int64_t i, std::int64_t n) { return (static_cast<double>(i) + 0.5) / static_cast<double>(n); }

template <class Value>
std::vector<double> fill(const MeshShape& shape, Value value) {
    std::vector<double> u;
    for (std::int64_t m = 0; m < shape.meshes; ++m)
        for (std::int64_t k = 0; k < shape.z; ++k)
            for (std::int64_t j = 0; j < shape.y; ++j)
                for (std::int64_t i = 0; i < shape.x; ++i) u.push_back(value(centre(i, shape.x), centre(j, shape.y), centre(k, shape.z)));
    return u;
}

Problem<double> unit_box(const MeshShape& shape, const std::array<Sides, 3>& sides, double step) {
    Problem<double> problem;
    problem.shape = shape, problem.sides = sides, problem.step = step;
    problem.spacing = {1.0 / static_cast<double>(shape.x), 1.0 / static_cast<double>(shape.y), 1.0 / static_cast<double>(shape.z)};
    return problem;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
    double off = 0;
    for (std::size_t i = 0; i < a.size(); ++i) off = std::max(off, std::isfinite(a[i]) ? std::abs(a[i] - b[i]) : INFINITY);
    return off;
}

class HeatOn : public tests::OnMeshDevice {
protected:
    template <class T>
    std::vector<T> run(const Problem<T>& problem, std::vector<T> u, std::int64_t steps) {
        Heat<T> heat(queue, problem, u.data());
        EXPECT_TRUE(heat.advance(steps).ok());
        EXPECT_EQ(heat.steps_done(), steps);
        return u;
    }
};

// A mode stays one, and shrinks by what Douglas and Gunn's formula says: to rounding, whatever the step.
TEST_P(HeatOn, EigenmodesShrinkAsTheFormulaSays) {
    const MeshShape shape{12, 9, 7, 2};
    for (const Sides& x : kinds)
        for (const Sides& y : kinds)
            for (const Sides& z : {kinds[0], kinds[4]})
                for (const double step : {1e-4, 0.05}) {
                    const Mode mx(x, 2), my(y, 1), mz(z, 1);
                    const Problem<double> problem = unit_box(shape, {x, y, z}, step);
                    const auto start = fill(shape, [&](double a, double b, double c) { return mx.shape(a) * my.shape(b) * mz.shape(c); });
                    const double ax = step * 144 * mx.eigenvalue(12), ay = step * 81 * my.eigenvalue(9), az = step * 49 * mz.eigenvalue(7);
                    const double factor = 1 + (ax + ay + az) / ((1 - ax / 2) * (1 - ay / 2) * (1 - az / 2));
                    std::vector<double> expected = start;
                    for (double& v : expected) v *= factor * factor * factor;
                    ASSERT_LT(largest_difference(run(problem, start, 3), expected), 1e-13) << "step " << step;
                }
}

TEST_P(HeatOn, SecondOrderInSpaceAndTime) {
    for (const Sides& kind : kinds) {
        const Mode mode(kind, 1);
        const auto value = [&](double a, double b, double) { return mode.shape(a) * mode.shape(b); };
        // In space: small steps, against the exact solution.
        const double end = 0.004, exact = std::exp(-2 * mode.wave * mode.wave * end);
        double error[2];
        for (int k = 0; k < 2; ++k) {
            const MeshShape shape{16 << k, 16 << k, 1, 1};
            std::vector<double> expected = fill(shape, value);
            for (double& v : expected) v *= exact;
            error[k] = largest_difference(run(unit_box(shape, {kind, kind, Sides{}}, end / 40), fill(shape, value), 40), expected);
        }
        EXPECT_NEAR(std::log2(error[0] / error[1]), 2, 0.15);
        // In time: against the exact solution of the equations in space.
        const MeshShape shape{16, 16, 1, 1};
        const double late = 0.02, decay = std::exp(2 * 256 * mode.eigenvalue(16) * late);
        for (int k = 0; k < 2; ++k) {
            const int steps = 8 << k;
            std::vector<double> expected = fill(shape, value);
            for (double& v : expected) v *= decay;
            error[k] = largest_difference(run(unit_box(shape, {kind, kind, Sides{}}, late / steps), fill(shape, value), steps), expected);
        }
        EXPECT_NEAR(std::log2(error[0] / error[1]), 2, 0.25);
    }
}

// A step of small meshes with dense matrices, row by row from the fluxes: step A of each axis, conductivity varying from cell to cell.
struct Dense {
    std::size_t n;
    std::array<std::vector<double>, 3> matrix;
    std::vector<double> right;  // A u + s, and what the sides give

    Dense(const Problem<double>& problem, const std::vector<double>& u) : n(u.size()), right(n) {
        const MeshShape& shape = problem.shape;
        const double* const k = problem.conductivities;
        for (std::size_t i = 0; i < n; ++i) right[i] = problem.step * problem.source[i];
        for (int axis = 0; axis < 3; ++axis) {
            auto& m = matrix[static_cast<std::size_t>(axis)];
            m.assign(n * n, 0);
            const std::int64_t length = shape.along(axis), stride = axis == 0 ? 1 : axis == 1 ? shape.x : shape.x * shape.y;
            const double scale = problem.step * static_cast<double>(length * length);
            for (std::int64_t i = 0; i < shape.points(); ++i) {
                const std::int64_t at = i / stride % length;
                for (const int way : {-1, 1}) {
                    const Sides& sides = problem.sides[static_cast<std::size_t>(axis)];
                    const Side& side = way < 0 ? sides.low : sides.high;
                    std::int64_t next = at + way;
                    const auto row = static_cast<std::size_t>(i);
                    if (next < 0 || next >= length) {
                        if (side.edge == Edge::even) continue;
                        if (side.edge == Edge::odd) {
                            m[row * n + row] -= 2 * scale * k[row], right[row] += 2 * scale * k[row] * side.value;
                            continue;
                        }
                        next = (next + length) % length;
                    }
                    const auto other = static_cast<std::size_t>(i + (next - at) * stride);
                    const double face = scale * 2 * k[row] * k[other] / (k[row] + k[other]);
                    m[row * n + row] -= face, m[row * n + other] += face;
                }
            }
            for (std::size_t i = 0; i < n; ++i)
                for (std::size_t j = 0; j < n; ++j) right[i] += m[i * n + j] * u[j];
        }
    }

    // δ of (1 - A/2) δ = right.
    std::vector<double> solved(const std::vector<double>& a, const std::vector<double>& of) const {
        std::vector<double> m(n * n), x = of;
        for (std::size_t i = 0; i < n * n; ++i) m[i] = -0.5 * a[i];
        for (std::size_t i = 0; i < n; ++i) m[i * n + i] += 1;
        std::vector<lapack_int> pivots(n);
        EXPECT_EQ(LAPACKE_dgesv(LAPACK_ROW_MAJOR, static_cast<lapack_int>(n), 1, m.data(), static_cast<lapack_int>(n), pivots.data(), x.data(), 1), 0);
        return x;
    }
};

// With sides of one kind on all axes, and conductivity, source and field at random.
struct SmallMesh {
    Problem<double> problem;
    std::vector<double> k, s, u;

    SmallMesh(const Sides& kind, tests::Random& random) {
        const MeshShape shape{5, 4, 3, 1};
        std::array<Sides, 3> sides{kind, kind, kind};
        if (kind.low.edge == Edge::odd) sides[0].low.value = 0.7, sides[1].low.value = -0.3;
        problem = unit_box(shape, sides, 0.03);
        for (std::vector<double>* const values : {&k, &s, &u}) values->resize(static_cast<std::size_t>(shape.points()));
        for (double& v : k) v = random.uniform(0.1, 3);
        for (double& v : s) v = random.uniform(-1, 1);
        for (double& v : u) v = random.uniform(-1, 1);
        problem.conductivities = k.data(), problem.source = s.data();
    }
};

// (1 - Ax/2)(1 - Ay/2)(1 - Az/2) δ = A u + s.
TEST_P(HeatOn, AgreesWithADirectSolveOfTheSplitEquation) {
    tests::Random random(5);
    for (const Sides& kind : kinds) {
        const SmallMesh mesh(kind, random);
        const Dense dense(mesh.problem, mesh.u);
        std::vector<double> increment = dense.right, expected = mesh.u;
        for (const auto& axis : dense.matrix) increment = dense.solved(axis, increment);
        for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += increment[i];
        EXPECT_LT(largest_difference(run(mesh.problem, mesh.u, 1), expected), 1e-13);
    }
}

// Crank and Nicolson's (1 - (Ax + Ay + Az)/2) δ = A u + s: splitting it costs the third power of the step.
TEST_P(HeatOn, ComesCloseToADirectSolveOfTheUnsplitEquation) {
    tests::Random random(6);
    for (const Sides& kind : kinds) {
        SmallMesh mesh(kind, random);
        double off[2];
        for (int half = 0; half < 2; ++half) {
            mesh.problem.step = 1e-4 / (1 << half);
            const Dense dense(mesh.problem, mesh.u);
            std::vector<double> sum(dense.n * dense.n), expected = mesh.u;
            for (const auto& axis : dense.matrix)
                for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += axis[i];
            const std::vector<double> increment = dense.solved(sum, dense.right);
            for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += increment[i];
            off[half] = largest_difference(run(mesh.problem, mesh.u, 1), expected);
        }
        EXPECT_LT(off[0], 1e-4);
        EXPECT_NEAR(std::log2(off[0] / off[1]), 3, 0.1);
    }
}

// u* = sin(πx) cos(πy) e^(xy) with k = 1 + x + y²/2, and the source that makes it the steady state.
TEST_P(HeatOn, ManufacturedSteadyStateIsReachedToSecondOrder) {
    double error[2];
    for (int level = 0; level < 2; ++level) {
        const std::int64_t n = 16 << level;
        const MeshShape shape{n, n, 1, 1};
        const auto exact = [](double x, double y, double) { return std::sin(pi * x) * std::cos(pi * y); };
        const auto k = [](double x, double y, double) { return 1 + x + y * y / 2; };
        // -div(k grad u) = 2π² k u - ∂x k ∂x u - ∂y k ∂y u
        const auto source = [&](double x, double y, double z) {
            return 2 * pi * pi * k(x, y, z) * exact(x, y, z) - pi * std::cos(pi * x) * std::cos(pi * y) + y * pi * std::sin(pi * x) * std::sin(pi * y);
        };
        const std::vector<double> conductivity = fill(shape, k), heating = fill(shape, source);
        Problem<double> problem = unit_box(shape, {kinds[0], kinds[1], Sides{}}, 0.01);
        problem.conductivities = conductivity.data(), problem.source = heating.data();
        error[level] = largest_difference(run(problem, std::vector<double>(static_cast<std::size_t>(n * n)), 300), fill(shape, exact));
    }
    EXPECT_NEAR(std::log2(error[0] / error[1]), 2, 0.2) << error[0] << " " << error[1];
}

TEST_P(HeatOn, InsulatedSidesKeepTheHeat) {
    tests::Random random(6);
    const MeshShape shape{20, 11, 6, 1};
    std::vector<double> k(static_cast<std::size_t>(shape.points())), u = k;
    for (double& v : k) v = std::exp(random.normal(0, 2));
    for (double& v : u) v = random.uniform(0, 1);
    Problem<double> problem = unit_box(shape, {kinds[1], kinds[4], kinds[1]}, 0.01);
    problem.conductivities = k.data();
    const auto sum = [](const std::vector<double>& values) {
        double all = 0;
        for (const double v : values) all += v;
        return all;
    };
    const double before = sum(u);
    EXPECT_NEAR(sum(run(problem, u, 20)), before, 1e-11 * before);  // fluxes up to 10^4 times u cancel
}

TEST_P(HeatOn, PeacemanAndRachfordsIsTheSameInTwoDimensions) {
    tests::Random random(7);
    const MeshShape shape{23, 18, 1, 3};
    std::vector<double> k(static_cast<std::size_t>(shape.x * shape.y)), s = k, u(static_cast<std::size_t>(shape.points()));
    for (double& v : k) v = random.uniform(0.1, 3);
    for (double& v : s) v = random.uniform(-1, 1);
    for (double& v : u) v = random.uniform(-1, 1);
    for (const bool varies : {false, true}) {
        Problem<double> problem = unit_box(shape, {Sides{{Edge::odd, 0.4}, {Edge::odd, -0.2}}, kinds[4], Sides{}}, 0.01);
        problem.source = s.data();
        if (varies) problem.conductivities = k.data();
        const std::vector<double> one = run(problem, u, 6);
        problem.scheme = Scheme::peaceman_rachford;
        EXPECT_LT(largest_difference(run(problem, u, 6), one), 1e-12);
    }
}

// In parts, with looks at the host's copy on the way, as in one: bit by bit.
TEST_P(HeatOn, PartsOfABatchAreAsAllOfIt) {
    tests::Random random(8);
    for (const MeshShape& shape : {MeshShape{14, 11, 1, 7}, MeshShape{6, 5, 4, 7}}) {
        const std::int64_t cells = shape.x * shape.y * shape.z;
        std::vector<float> k(static_cast<std::size_t>(cells)), s = k, start(static_cast<std::size_t>(shape.points()));
        for (float& v : k) v = static_cast<float>(random.uniform(0.1, 3));
        for (float& v : s) v = static_cast<float>(random.uniform(-1, 1));
        for (float& v : start) v = static_cast<float>(random.uniform(-1, 1));
        Problem<float> problem;
        problem.shape = shape, problem.step = 0.4, problem.sides = {Sides{{Edge::odd, 0.4}, {Edge::even}}, kinds[4], kinds[1]};
        problem.conductivities = k.data(), problem.source = s.data();
        const std::vector<float> expected = run(problem, start, 7);
        for (const std::int64_t at_once : {0, 1, 3, 4, 7, 100}) {
            std::vector<float> u = start, row(static_cast<std::size_t>(shape.x));
            Parts<float> parts(queue, problem, u.data(), at_once);
            EXPECT_EQ(parts.count(), at_once == 0 || at_once >= 7 ? 1 : (7 + at_once - 1) / at_once);
            for (const std::int64_t steps : {4, 3})
                for (std::int64_t part = 0; part < parts.count(); ++part) {
                    parts.enter(part);
                    ASSERT_TRUE(parts.advance(steps).ok());
                    parts.read(cells - shape.x, row);
                    parts.fetch();
                    ASSERT_TRUE(std::equal(row.begin(), row.end(), u.data() + (part * parts.meshes() + 1) * cells - shape.x));
                }
            ASSERT_EQ(u, expected) << at_once << " at once";
        }
    }
}

// NaN in mesh 5 at step 3 of the whole run is said of mesh 5 and step 3, whatever part it was in.
TEST_P(HeatOn, FailuresInPartsAreNamedAsInTheWhole) {
    const MeshShape shape{8, 6, 1, 7};
    Problem<double> problem;
    problem.shape = shape, problem.step = 0.5;
    std::vector<double> u(static_cast<std::size_t>(shape.points()), 1.0);
    Parts<double> parts(queue, problem, u.data(), 3);
    for (std::int64_t part = 0; part < parts.count(); ++part) {
        parts.enter(part);
        ASSERT_TRUE(parts.advance(3).ok());
    }
    parts.enter(0);
    u[static_cast<std::size_t>(5 * 48 + 13)] = NAN;
    parts.enter(1);
    const SweepOutcome outcome = parts.advance(2);
    EXPECT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.mesh, 5);
    EXPECT_EQ(outcome.step, 3);
}

TRIFOLD_ON_EVERY_DEVICE(HeatOn);

TEST(HeatRefuses, WhatIsNotPhysical) {
    Queue queue(context(), "cpu");
    std::vector<double> u(60), k(60, 1.0);
    const auto expect = [&](Problem<double> problem, const std::string& words) {
        try {
            Heat<double> heat(queue, problem, u.data());
            FAIL() << words;
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
        }
    };
    Problem<double> good = unit_box({5, 4, 3, 1}, {}, 0.1), bad = good;
    bad.step = 0, expect(bad, "no step of time");
    bad = good, bad.spacing[1] = -1, expect(bad, "no spacing");
    bad = good, bad.conductivity = 0, expect(bad, "is not positive");
    bad = good, bad.scheme = Scheme::peaceman_rachford, expect(bad, "two dimensions");
    k[5 * 4 * 2 + 5 + 3] = -2;
    bad = good, bad.conductivities = k.data(), expect(bad, "at x = 3, y = 1, z = 2");
    std::vector<double> s(60, NAN);
    bad = good, bad.source = s.data(), expect(bad, "not finite at x = 0");
}

TEST(MeshNumber, OfTheFinestAxis) {
    Problem<double> problem = unit_box({10, 20, 1, 1}, {}, 0.01);
    EXPECT_DOUBLE_EQ(mesh_number(problem), 0.01 * 400);
    problem.conductivity = 3;
    EXPECT_DOUBLE_EQ(mesh_number(problem), 0.03 * 400);
}

}  // namespace
}  // namespace trifold::heat
