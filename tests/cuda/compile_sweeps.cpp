// SPDX-License-Identifier: BSD-3-Clause
// What sweeps compile at run time compiles, for an H200's architecture, by the compiler that is there: no GPU is needed. Without that compiler
// the test is skipped.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <vector>

#include "backends/cuda/table.hpp"
#include "heat/stencils.hpp"

namespace trifold::tests {
namespace {

TRIFOLD_POINT_FUNCTION(look_around, {
    real nearby = at(0, 2, -1, 1) + at(1, -2, 2, -2) * fmax(real(step), real(0.5));
    out(0) = x + y + z + mesh > 3 ? p(0) * sqrt(fabs(nearby)) : exp(-nearby) + fmin(p(2), real(z));
})
TRIFOLD_POINT_FUNCTION(stretched, {
    out(0) = -real(0.3) / (1 + real(x));
    out(2) = -real(0.2) / (2 + real(x));
    out(1) = 1 - out(0) - out(2);
})
TRIFOLD_POINT_FUNCTION(no_such_name, { out(0) = at(0, 0, 0, 0) + p(0); })

const cuda::Table* table() {
    void* const library = dlopen(cuda::Table::library_name, RTLD_NOW | RTLD_LOCAL);
    const auto function = library ? reinterpret_cast<const cuda::Table* (*)()>(dlsym(library, cuda::Table::table_symbol)) : nullptr;
    return function ? function() : nullptr;
}

struct CompileSweeps : testing::Test {
    void SetUp() override {
        ASSERT_NE(table(), nullptr) << dlerror();
        if (const char* const why = table()->compiler_missing()) GTEST_SKIP() << why;
    }

    // By every kind of kernels that takes it; the general one, at least, does. (What compiled before is found in the cache, as long as nothing changes.)
    template <class T>
    void compile(const MeshShape& shape, const std::array<Sides, 3>& sides, const std::vector<Sweep>& sweeps) {
        alignas(256) static T values[64];
        const AnyField fields[] = {Field<T>::packed(values, shape, sides), Field<const T>::packed(values + 16, shape), Field<const T>::strided(values + 32, {1, 0, 0, 0})};
        const std::vector<double> parameters{0.5, 0.4, 0.3, 0.1};
        const MeshProblem problem{shape, fields, sweeps, parameters};
        mesh::Checked checked;
        checked.problem = &problem, checked.dtype = dtype_of<T>;
        for (const Sweep& sweep : sweeps) {
            mesh::CheckedSweep one;
            one.sweep = &sweep;
            if (sweep.rhs) one.rhs = mesh::access_of(sweep.rhs);
            if (sweep.update) one.update = mesh::access_of(sweep.update), one.adds = mesh::summands_of(sweep.update) == std::array{sweep.target, static_cast<int>(std::size(fields))};
            for (const LineSolve& line : sweep.lines) one.coefficients.push_back(line.coefficients ? mesh::access_of(line.coefficients) : mesh::Access{});
            checked.sweeps.push_back(one);
        }
        int compiled = 0;
        for (int kind = 0;; ++kind) {
            const char *name = nullptr, *refuses = nullptr;
            Failure failure;
            ASSERT_TRUE(table()->mesh_compile(checked, 90, false, kind, &name, &refuses, failure)) << name << ": " << failure.message << "; " << failure.hint;
            if (!name) break;
            compiled += refuses == nullptr;
        }
        EXPECT_GE(compiled, 1);
    }

    template <class T>
    void compile_all() {
        using namespace heat;
        const std::array<Sides, 3> fixed{Sides{{Edge::odd, 1.0}, {Edge::odd}}, Sides{{Edge::odd}, {Edge::even}}, Sides{{Edge::odd}, {Edge::odd}}}, free{};
        std::array<Sides, 3> around{};
        for (Sides& axis : around) axis = {{Edge::periodic}, {Edge::periodic}};
        const std::array<double, 3> row{-0.25, 1.5, -0.25};
        const std::vector<Sweep> plane{{increment_2d, {{0, row}, {1, row}}, add_increment, 0, free}}, solid{{increment_3d, {{0, row}, {1, row}, {2, row}}, add_increment, 0, free}};
        const std::vector<Sweep> plane_rings{{increment_2d, {{0, row}, {1, row}}, add_increment, 0, around}}, solid_rings{{increment_3d, {{0, row}, {1, row}, {2, row}}, add_increment, 0, around}};
        const std::vector<Sweep> varying{{varying_increment_3d, {{0, {}, varying_x}, {1, {}, varying_y}, {2, {}, varying_z}}, add_increment, 0, free}};
        const std::vector<Sweep> halves{{half_step_y, {{0, row}}, {}, 0, free}, {half_step_x, {{1, row}}, {}, 0, free}};
        const std::vector<Sweep> mixed{{look_around, {{0, {}, stretched, true}, {1, {}, varying_y}}, add_increment, 0, around}, {{}, {{2, row}}, {}, 0, fixed}};
        compile<T>({128, 128, 1, 100}, fixed, plane);
        compile<T>({512, 512, 1, 12}, free, plane);
        compile<T>({48, 48, 48, 10}, fixed, solid);
        compile<T>({256, 256, 256, 1}, fixed, solid);
        compile<T>({150, 75, 33, 4}, around, solid_rings);
        compile<T>({96, 96, 96, 30}, around, solid_rings);
        compile<T>({256, 64, 48, 1}, around, solid_rings);
        compile<T>({700, 600, 1, 6}, around, plane_rings);
        compile<T>({64, 40, 30, 2}, fixed, varying);
        compile<T>({96, 96, 1, 7}, free, halves);
        compile<T>({17, 5, 3, 2}, around, mixed);
    }
};

TEST_F(CompileSweeps, SinglePrecision) { compile_all<float>(); }
TEST_F(CompileSweeps, DoublePrecision) { compile_all<double>(); }

// Boxes whose planes fit on a multiprocessor, alone (all steps in one launch), a few, and enough for a step to be one pass: with the segments of that.
TEST_F(CompileSweeps, BoxesOfPlanes) {
    const std::array<Sides, 3> fixed{Sides{{Edge::odd, 1.0}, {Edge::odd}}, Sides{{Edge::odd}, {Edge::even}}, Sides{{Edge::odd}, {Edge::odd}}};
    const std::array<double, 3> row{-0.25, 1.5, -0.25};
    const std::vector<Sweep> solid{{heat::increment_3d, {{0, row}, {1, row}, {2, row}}, heat::add_increment, 0, {}}};
    for (const MeshShape& shape : {MeshShape{80, 80, 80, 1}, {80, 80, 80, 3}, {80, 80, 80, 48}, {96, 96, 96, 3}, {96, 96, 96, 48}, {96, 80, 80, 24}, {96, 128, 48, 20}}) compile<float>(shape, fixed, solid);
    for (const MeshShape& shape : {MeshShape{64, 96, 64, 3}, {64, 96, 64, 12}, {96, 80, 80, 24}}) compile<double>(shape, fixed, solid);
}

TEST_F(CompileSweeps, AnErrorNamesItsFunction) {
    PointFunction bad = no_such_name;
    bad.source = "{ out(0) = at(0, 0, 0, 0) + nowhere_declared; }";
    const MeshShape shape{8, 8, 1, 1};
    double values[64] = {};
    const AnyField fields[] = {Field<double>::packed(values, shape)};
    const std::vector<Sweep> sweeps{{bad, {}, {}, 0, {}}};
    const MeshProblem problem{shape, fields, sweeps, {}};
    mesh::Checked checked;
    checked.problem = &problem;
    checked.sweeps.push_back({&sweeps[0], mesh::access_of(bad), {}, {}});
    for (int kind = 0;; ++kind) {
        const char *name = nullptr, *refuses = nullptr;
        Failure failure;
        const bool good = table()->mesh_compile(checked, 90, false, kind, &name, &refuses, failure);
        if (!name) break;
        if (refuses) continue;
        EXPECT_FALSE(good);
        EXPECT_NE(std::string(failure.message).find("no_such_name"), std::string::npos) << failure.message;
        EXPECT_NE(std::string(failure.message).find("nowhere_declared"), std::string::npos) << failure.message;
    }
}

}  // namespace
}  // namespace trifold::tests
