// SPDX-License-Identifier: BSD-3-Clause
// Sweeps over meshes: every device that has them against the reference, and the reference against the definition.
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "contract/tridiagonal/devices.hpp"
#include "support/random.hpp"

namespace trifold::tests {
namespace {

// Fields: 0 = u, 1 = conductivity, 2 = source.
TRIFOLD_POINT_FUNCTION(diffusion, {
    real k = at(1, 0, 0, 0);
    real u = at(0, 0, 0, 0);
    out(0) = p(0) * ((at(1, 1, 0, 0) + k) * (at(0, 1, 0, 0) - u) - (at(1, -1, 0, 0) + k) * (u - at(0, -1, 0, 0)) +
                     (at(1, 0, 1, 0) + k) * (at(0, 0, 1, 0) - u) - (at(1, 0, -1, 0) + k) * (u - at(0, 0, -1, 0)) +
                     (at(1, 0, 0, 1) + k) * (at(0, 0, 0, 1) - u) - (at(1, 0, 0, -1) + k) * (u - at(0, 0, 0, -1)) + at(2, 0, 0, 0)) +
             p(1) * (at(0, 2, -1, 0) - at(0, -2, 1, 1) + real(step));
})
TRIFOLD_POINT_FUNCTION(along_x, {
    out(0) = -p(0) * (at(1, -1, 0, 0) + at(1, 0, 0, 0));
    out(2) = -p(0) * (at(1, 1, 0, 0) + at(1, 0, 0, 0));
    out(1) = 1 - out(0) - out(2);
})
TRIFOLD_POINT_FUNCTION(along_y, {
    out(0) = -p(0) * (at(1, 0, -1, 0) + at(1, 0, 0, 0));
    out(2) = -p(0) * (at(1, 0, 1, 0) + at(1, 0, 0, 0));
    out(1) = 1 - out(0) - out(2);
})
TRIFOLD_POINT_FUNCTION(along_z, {
    out(0) = -p(0) * (at(1, 0, 0, -1) + at(1, 0, 0, 0));
    out(2) = -p(0) * (at(1, 0, 0, 1) + at(1, 0, 0, 0));
    out(1) = 1 - out(0) - out(2);
})
// The matrix of a stretched mesh: the same on every line.
TRIFOLD_POINT_FUNCTION(stretched_x, {
    out(0) = -real(0.3) / (1 + real(x));
    out(2) = -real(0.2) / (2 + real(x));
    out(1) = 1 - out(0) - out(2);
})
// The target's own neighbours decide the matrix of the second axis.
TRIFOLD_POINT_FUNCTION(nonlinear_y, {
    out(0) = -p(0) * (1 + fabs(at(0, -1, 0, 0) - at(0, 0, 0, 1)));
    out(2) = -p(0) * (1 + fabs(at(0, 1, 1, 0)));
    out(1) = 1 - out(0) - out(2);
})
TRIFOLD_POINT_FUNCTION(nonlinear_z, {
    out(0) = -mad(p(0), fabs(at(0, -1, 0, 0)), p(0));
    out(2) = -mad(p(0), fabs(at(0, 0, 1, 0)), p(0));
    out(1) = mad(-1, out(0), 1 - out(2));
})
// Part of it is the same in every step.
TRIFOLD_POINT_FUNCTION(harmonic, {
    real u = at(0, 0, 0, 0);
    real k = at(1, 0, 0, 0);
    out(0) = mad(p(0) * k, mad(at(1, -1, 0, 0) / (k + at(1, -1, 0, 0)), at(0, -1, 0, 0) - u, at(1, 1, 0, 0) / (k + at(1, 1, 0, 0)) * (at(0, 1, 0, 0) - u)),
                 p(1) / sqrt(k) * (at(0, 0, -1, 0) - at(0, 0, 1, 1)) + -at(2, 0, 0, 0) * u * (1 - u) * mad(1, step, x) / 64);
})
TRIFOLD_POINT_FUNCTION(add, { out(0) = at(0, 0, 0, 0) + at(3, 0, 0, 0); })
TRIFOLD_POINT_FUNCTION(relax, {
    real half = real(0.5);
    out(0) = x + y + z + mesh > 3 ? half * at(0, 0, 0, 0) + half * at(3, 0, 0, 0) : mad(p(1), at(2, 0, 0, 0), at(3, 0, 0, 0));
})

template <class T>
struct Mesh {
    MeshShape shape;
    std::vector<T> u, k, source;
    std::array<Sides, 3> sides{};
    std::array<std::int64_t, 4> strides{};
    std::vector<double> parameters{0.2, 0.01};
    bool one_conductivity = false;  // for all meshes

    Mesh(const MeshShape& s, Random& random) : shape(s), k(static_cast<std::size_t>(s.points())), source(k.size()) {
        for (Sides& axis : sides) {
            if (random.chance(0.3)) {
                axis = {{Edge::periodic}, {Edge::periodic}};
                continue;
            }
            for (Side* side : {&axis.low, &axis.high}) *side = {random.chance(0.5) ? Edge::even : Edge::odd, random.uniform(-1, 1)};
        }
        // With x fastest, with gaps, or with x slowest.
        const std::int64_t kind = random.below(3), gap = kind == 1 ? 3 : 0;
        strides = {1, s.x + gap, (s.x + gap) * s.y, (s.x + gap) * s.y * s.z};
        if (kind == 2) strides = {s.y * s.z, s.z, 1, s.points() / std::max<std::int64_t>(s.meshes, 1)};
        u.resize(static_cast<std::size_t>(s.points() + gap * s.y * s.z * s.meshes));
        one_conductivity = random.chance(0.5);
        for (T& v : u) v = static_cast<T>(random.uniform(-1, 1));
        for (T& v : k) v = static_cast<T>(random.uniform(0.1, 2));
        for (T& v : source) v = static_cast<T>(random.uniform(-1, 1));
    }

    SweepOutcome run(Queue& queue, std::span<const Sweep> sweeps, std::int64_t steps, const SweepOptions& options = {}) {
        std::array<std::int64_t, 4> k_strides = Field<T>::packed(k.data(), shape).stride;
        if (one_conductivity) k_strides[3] = 0;
        std::array<Sides, 3> mirrored{};
        for (std::size_t axis = 0; axis < 3; ++axis)
            if (sides[axis].low.edge == Edge::periodic) mirrored[axis] = sides[axis];
        const AnyField fields[] = {Field<T>::strided(u.data(), strides, sides), Field<const T>::strided(k.data(), k_strides, mirrored), Field<const T>::packed(source.data(), shape)};
        return sweep(queue, {shape, fields, sweeps, parameters}, steps, options);
    }
};

std::array<Sides, 3> without_values(std::array<Sides, 3> sides) {
    for (Sides& axis : sides) axis.low.value = axis.high.value = 0;
    return sides;
}

template <class T>
double difference(const std::vector<T>& a, const std::vector<T>& b) {
    double largest = 0, off = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        largest = std::max(largest, std::abs(static_cast<double>(b[i])));
        off = std::max(off, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
        if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return INFINITY;
    }
    return off / std::max(largest, 1e-300);
}

using SweepsOf = std::vector<Sweep> (*)(const std::array<Sides, 3>& sides);

struct Scheme {
    const char* name;
    SweepsOf make;
};

const Scheme schemes[] = {
    {"increments, x y z, functions", [](const std::array<Sides, 3>& s) { return std::vector<Sweep>{{diffusion, {{0, {}, along_x}, {1, {}, along_y}, {2, {}, along_z}}, add, 0, without_values(s)}}; }},
    {"increments, constants", [](const std::array<Sides, 3>& s) { return std::vector<Sweep>{{diffusion, {{0, {-0.3, 1.6, -0.3}}, {1, {-0.2, 1.5, -0.3}}, {2, {-0.1, 1.2, -0.1}}}, add, 0, without_values(s)}}; }},
    {"right-hand side in two parts", [](const std::array<Sides, 3>& s) { return std::vector<Sweep>{{harmonic, {{0, {}, along_x}, {1, {}, along_y}}, relax, 0, s}, {harmonic, {{1, {}, along_y}}, {}, 0, s}}; }},
    {"two axes, then one with values on its sides", [](const std::array<Sides, 3>& s) { return std::vector<Sweep>{{diffusion, {{0, {-0.3, 1.6, -0.3}}, {1, {}, along_y}}, add, 0, without_values(s)}, {{}, {{2, {-0.4, 1.9, -0.5}}}, relax, 0, s}}; }},
    {"z first, then x", [](const std::array<Sides, 3>& s) { return std::vector<Sweep>{{diffusion, {{2, {}, along_z}, {0, {}, stretched_x, true}}, relax, 0, s}}; }},
    {"matrices from the target", [](const std::array<Sides, 3>& s) { return std::vector<Sweep>{{diffusion, {{0, {}, stretched_x, true}, {1, {}, nonlinear_y}, {2, {}, nonlinear_z}}, relax, 0, without_values(s)}}; }},
    {"no lines", [](const std::array<Sides, 3>& s) { return std::vector<Sweep>{{diffusion, {}, {}, 0, s}}; }},
    {"lines only", [](const std::array<Sides, 3>& s) { return std::vector<Sweep>{{{}, {{1, {-0.3, 1.6, -0.3}}, {0, {-0.1, -1.9, 0.5}}}, {}, 0, s}}; }},
};

const MeshShape shapes[] = {{1, 1, 1, 1}, {2, 1, 1, 3}, {3, 3, 1, 2}, {1, 5, 2, 2}, {4, 2, 3, 1}, {17, 1, 1, 5}, {33, 31, 1, 1}, {8, 9, 10, 2}, {16, 16, 16, 1},
                            {65, 3, 2, 3}, {3, 64, 5, 1}, {130, 40, 9, 1}, {5, 4, 129, 2}};

class Sweeps : public OnMeshDevice {
protected:
    Queue reference{context(), "reference"};

    template <class T>
    void compare(int which, double allowed) {
        if (GetParam() == "reference") GTEST_SKIP() << "what others are compared with";
        const MeshShape& shape = shapes[which];
        const std::uint64_t seed = std::random_device{}();
        std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
        Random random(seed);
        for (const Scheme& scheme : schemes) {
            Mesh<T> ours(shape, random);
            Mesh<T> expected = ours;
            const std::vector<Sweep> sweeps = scheme.make(ours.sides);
            const SweepOutcome outcome = ours.run(queue, sweeps, 3, {.first_step = 4}), right = expected.run(reference, sweeps, 3, {.first_step = 4});
            ASSERT_EQ(outcome.reason, Reason::exact) << scheme.name;
            ASSERT_EQ(right.reason, Reason::exact) << scheme.name;
            ASSERT_STREQ(outcome.device, GetParam().c_str());
            ASSERT_EQ(outcome.rescued, 0) << scheme.name;
            ASSERT_LE(difference(ours.u, expected.u), allowed)
                << scheme.name << " on " << shape.x << " x " << shape.y << " x " << shape.z << ", " << shape.meshes << " meshes";
        }
    }
};

// A test for each shape, since a GPU's kernels are compiled for it.
#define TRIFOLD_SHAPE(WHICH)                                                                    \
    TEST_P(Sweeps, AgreeWithTheReferenceF64OnShape##WHICH) { compare<double>(WHICH, 3e-13); } \
    TEST_P(Sweeps, AgreeWithTheReferenceF32OnShape##WHICH) { compare<float>(WHICH, 1e-4); }
TRIFOLD_SHAPE(0)
TRIFOLD_SHAPE(1)
TRIFOLD_SHAPE(2)
TRIFOLD_SHAPE(3)
TRIFOLD_SHAPE(4)
TRIFOLD_SHAPE(5)
TRIFOLD_SHAPE(6)
TRIFOLD_SHAPE(7)
TRIFOLD_SHAPE(8)
TRIFOLD_SHAPE(9)
TRIFOLD_SHAPE(10)
TRIFOLD_SHAPE(11)
TRIFOLD_SHAPE(12)
static_assert(std::size(shapes) == 13);

TEST_P(Sweeps, ManyMeshesAreSingleOnesBitByBit) {
    Random random(11);
    const MeshShape shape{37, 20, 1, 9};
    Mesh<double> all(shape, random);
    all.one_conductivity = false;
    all.strides = Field<double>::packed(nullptr, shape).stride;
    all.u.resize(static_cast<std::size_t>(shape.points()));
    const std::vector<Sweep> cut{{harmonic, {{0, {}, along_x}, {1, {}, along_y}}, add, 0, without_values(all.sides)}};
    for (const std::vector<Sweep>& sweeps : {schemes[0].make(all.sides), cut}) {
        std::vector<double> expected;
        for (std::int64_t m = 0; m < shape.meshes; ++m) {
            Mesh<double> one = all;
            one.shape.meshes = 1;
            const std::int64_t points = one.shape.points();
            for (std::vector<double>* values : {&one.u, &one.k, &one.source}) *values = {values->begin() + m * points, values->begin() + (m + 1) * points};
            ASSERT_TRUE(one.run(queue, sweeps, 5).ok());
            expected.insert(expected.end(), one.u.begin(), one.u.end());
        }
        ASSERT_TRUE(all.run(queue, sweeps, 5).ok());
        EXPECT_EQ(all.u, expected);
    }
}

// Dominated well, hardly, and not at all: nearly singular ones agree as far as their condition lets them.
TEST_P(Sweeps, RingsOfEveryKind) {
    if (GetParam() == "reference") GTEST_SKIP() << "what others are compared with";
    Random random(15);
    for (const auto& [row, allowed] : {std::pair{std::array{-0.3, 1.7, -0.4}, 1e-13}, {std::array{-1.0, 2 + 1e-6, -1.0}, 1e-7}, {std::array{0.6, 1.0, -0.7}, 1e-11}, {std::array{-1.0, -2.5, 1.2}, 1e-13}})
        for (const MeshShape& shape : {MeshShape{24, 17, 1, 3}, MeshShape{9, 70, 6, 1}, MeshShape{5, 3, 40, 2}}) {
            Mesh<double> ours(shape, random);
            for (Sides& axis : ours.sides) axis = {{Edge::periodic}, {Edge::periodic}};
            Mesh<double> expected = ours;
            for (int axis = 0; axis < (shape.z > 1 ? 3 : 2); ++axis) {
                const std::vector<Sweep> sweeps{{{}, {{axis, row}}, {}, 0, ours.sides}};
                ASSERT_TRUE(ours.run(queue, sweeps, 1).ok());
                ASSERT_TRUE(expected.run(reference, sweeps, 1).ok());
                ASSERT_LE(difference(ours.u, expected.u), allowed) << "along " << axis << ", diagonal " << row[1];
                ours.u = expected.u;
            }
        }
}

TEST_P(Sweeps, ALineThatFailsIsNamed) {
    Random random(12);
    Mesh<double> mesh({8, 6, 5, 3}, random);
    mesh.sides = {};
    mesh.strides = Field<double>::packed(nullptr, mesh.shape).stride;
    mesh.one_conductivity = false;
    mesh.u.assign(static_cast<std::size_t>(mesh.shape.points()), 1.0);
    const auto at = [&](std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t m) { return static_cast<std::size_t>(((m * 5 + z) * 6 + y) * 8 + x); };
    // p(0) = 0 leaves the identity; a conductivity of infinity at one point of mesh 1 makes it not finite there.
    mesh.parameters = {0, 0};
    mesh.k[at(4, 3, 2, 1)] = INFINITY;
    const std::vector<double> before = mesh.u;
    const std::vector<Sweep> sweeps{{{}, {{0, {2, 3, 0}}, {1, {}, along_y}}, add, 0, {}}};
    const SweepOutcome outcome = mesh.run(queue, sweeps, 2);
    EXPECT_EQ(outcome.reason, Reason::not_finite);
    EXPECT_EQ(outcome.step, 0);
    EXPECT_EQ(outcome.sweep, 0);
    EXPECT_EQ(outcome.axis, 1);
    EXPECT_EQ(outcome.mesh, 1);
    EXPECT_EQ(outcome.x, 4);
    EXPECT_EQ(outcome.z, 2);
    EXPECT_EQ(outcome.failures, 1);
    EXPECT_EQ(mesh.u[at(4, 3, 2, 1)], before[at(4, 3, 2, 1)]);
    EXPECT_NE(mesh.u[at(4, 3, 2, 0)], before[at(4, 3, 2, 0)]) << "the other meshes go on";
    EXPECT_NE(mesh.u[at(4, 3, 2, 2)], before[at(4, 3, 2, 2)]);
}

TEST_P(Sweeps, NothingToDo) {
    Random random(13);
    Mesh<double> none({0, 4, 1, 1}, random);
    const std::vector<Sweep> sweeps = schemes[0].make({});
    EXPECT_EQ(none.run(queue, sweeps, 3).reason, Reason::none);
    Mesh<double> some({3, 4, 1, 1}, random);
    EXPECT_EQ(some.run(queue, sweeps, 0).reason, Reason::none);
    EXPECT_EQ(some.run(queue, {}, 2).reason, Reason::none);
}

TRIFOLD_ON_EVERY_DEVICE(Sweeps);

// ---- what is refused ----

TRIFOLD_POINT_FUNCTION(too_far, { out(0) = at(0, 3, 0, 0); })
TRIFOLD_POINT_FUNCTION(variable_offset, {
    int i = 1;
    out(0) = at(0, i, 0, 0);
})
TRIFOLD_POINT_FUNCTION(no_such_field, { out(0) = at(5, 0, 0, 0); })
TRIFOLD_POINT_FUNCTION(two_results, {
    out(0) = at(0, 0, 0, 0);
    out(1) = 1;
})
TRIFOLD_POINT_FUNCTION(gap, { out(2) = 1; })
TRIFOLD_POINT_FUNCTION(parameter_seven, { out(0) = p(7); })
TRIFOLD_POINT_FUNCTION(neighbours, { out(0) = at(0, 1, 0, 0); })

class Refused : public testing::Test {
protected:
    Queue queue{context(), "cpu"};
    MeshShape shape{4, 4, 1, 1};
    std::vector<double> u = std::vector<double>(16, 1), v = u;
    std::vector<AnyField> fields{Field<double>::packed(u.data(), shape), Field<const double>::packed(v.data(), shape)};
    std::vector<Sweep> sweeps{{{}, {{0, {-1, 3, -1}}}, {}, 0, {}}};
    std::vector<double> parameters{1, 2};

    void expect(const std::string& words) {
        try {
            sweep(queue, {shape, fields, sweeps, parameters});
            FAIL() << "should have been refused: " << words;
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
        }
    }
};

TEST_F(Refused, Functions) {
    for (const auto& [function, words] : {std::pair{too_far, "more than 2 points away"}, {variable_offset, "an integer as such"}, {no_such_field, "reads field 5 of 2"},
                                          {two_results, "2 results where 1 result is due"}, {gap, "below out(2) is never assigned"}, {parameter_seven, "reads parameter 7 of 2"}}) {
        sweeps[0].rhs = function;
        expect(words);
    }
    sweeps[0].rhs = {};
    sweeps[0].update = neighbours;
    expect("reads neighbours");
    sweeps[0].update = {};
    sweeps[0].lines[0].coefficients = neighbours;
    expect("1 result where 3 results are due");
}

TEST_F(Refused, Fields) {
    const std::vector<AnyField> good = fields;
    fields[0].writable = false;
    expect("cannot be written");
    fields = good, fields[1].dtype = DType::f32;
    expect("field 1");
    fields = good, fields[0].stride[1] = 0;
    expect("share an address");
    fields = good, fields[1].data = u.data() + 1;
    expect("share memory");
    fields = good, fields[1].data = nullptr;
    expect("null pointer");
    fields = good, fields[0].sides[1].low.edge = Edge::periodic;
    expect("one side of y is periodic");
    fields = good, fields[0].sides[2].high.value = NAN;
    expect("side of z is not finite");
    for (const std::int64_t far : {INT64_MAX / 2, INT64_MIN, -(std::int64_t{1} << 53)}) {
        fields = good, fields[0].stride[1] = far;
        expect("field 0: points " + std::to_string(far) + " elements apart, beyond every address");
    }
    fields = good, fields[0].sides[1].low.edge = static_cast<Edge>(9);
    expect("edge 9 of the enumeration");
    fields = good;
    sweeps[0].solution[0].high.edge = static_cast<Edge>(3);
    expect("edge 3 of the enumeration");
    sweeps[0].solution[0].high.edge = Edge::even;
    fields.clear();
    expect("0 fields");
    fields = good, shape.y = -1;
    expect("negative extent");
}

TEST_F(Refused, Lines) {
    sweeps[0].lines[0].axis = 3;
    expect("no axis 3");
    sweeps[0].lines[0] = {0, {1, INFINITY, 0}};
    expect("along x is not finite");
    sweeps[0].lines.assign(65, {});
    expect("65 line solves");
    sweeps[0].lines.assign(1, {});
    sweeps[0].target = 2;
    expect("no field 2");
}

}  // namespace
}  // namespace trifold::tests
