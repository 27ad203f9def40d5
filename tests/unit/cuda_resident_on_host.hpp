// SPDX-License-Identifier: BSD-3-Clause
// The kernels that keep meshes on chip, run on the host thread by thread, against the reference: the problems, and how they are run.
#pragma once

#include "support/blocks_on_host.hpp"

#include <gtest/gtest.h>

#include "backends/cuda/mesh/resident/cut.hpp"
#include "backends/cuda/mesh/resident/factors.hpp"
#include "backends/cuda/mesh/resident/kernel.cuh"
#include "support/random.hpp"
#include "trifold/trifold.hpp"

namespace trifold::cuda {

inline void give_up(MeshState* state, unsigned long long from) { state->refused_at = std::min(state->refused_at, from); }
inline bool gave_up(const MeshState* state, unsigned long long from) { return state->refused_at <= from; }

}  // namespace trifold::cuda

namespace trifold::tests {
namespace {

using namespace cuda::resident;
using cuda::resident::Plan;
using cuda::MeshState;

// Fields: 0 = u, 1 = v, 2 = a source along x alone.
TRIFOLD_POINT_FUNCTION(flat, {
    real u = at(0, 0, 0, 0);
    out(0) = p(0) * ((at(0, -1, 0, 0) - u) + (at(0, 1, 0, 0) - u)) + p(1) * ((at(0, 0, -1, 0) - u) + (at(0, 0, 1, 0) - u)) + at(2, 0, 0, 0) * real(step + mesh);
})
TRIFOLD_POINT_FUNCTION(faced, {
    real u = at(0, 0, 0, 0);
    out(0) = p(0) * ((at(0, -1, 0, 0) - u) + (at(0, 1, 0, 0) - u)) + p(1) * ((at(0, 0, -1, 0) - u) + (at(0, 0, 1, 0) - u)) + at(2, 0, 0, 0) * real(step + mesh) +
             (at(1, 0, 0, 0) - at(1, 1, 0, 0)) / 3 + (at(1, 0, 0, 0) / 2 - at(1, 0, 1, 0) / 2);
})
TRIFOLD_POINT_FUNCTION(crossed, {
    out(0) = p(0) * (at(0, 2, -1, 0) - at(0, -2, 1, 1)) + p(1) * at(1, 0, 0, 2) - p(1) * at(1, 1, -2, -1) + real(x + 2 * y + 3 * z) / 100;
})
TRIFOLD_POINT_FUNCTION(other, { out(0) = p(0) * at(0, 0, 0, 0) + at(1, 0, 0, 0) / 2; })
TRIFOLD_POINT_FUNCTION(clip, { out(0) = fmax(at(3, 0, 0, 0), real(0)); })
TRIFOLD_POINT_FUNCTION(add, { out(0) = at(0, 0, 0, 0) + at(3, 0, 0, 0); })

// Matrices that differ from line to line, made from v around the point.
TRIFOLD_POINT_FUNCTION(stretched_x, {
    out(0) = -real(0.3) + at(1, -1, 0, 0) / 8;
    out(2) = -real(0.2) + at(1, 1, 0, 0) / 8 - real(z) / 200;
    out(1) = real(1.6) + at(1, 0, 0, 0) / 4 + real(mesh) / 10;
})
TRIFOLD_POINT_FUNCTION(stretched_y, {
    out(0) = -real(0.2) + at(1, 0, -1, 0) / 8;
    out(2) = -real(0.4) + at(1, 0, 1, 0) / 8;
    out(1) = real(1.5) + at(1, 0, 0, 0) / 4 + real(x) / 100;
})
// The same from both sides of a face.
TRIFOLD_POINT_FUNCTION(mirrored_x, {
    out(0) = -real(0.3) + at(1, -1, 0, 0) * at(1, 0, 0, 0) / 8;
    out(2) = -real(0.3) + at(1, 0, 0, 0) * at(1, 1, 0, 0) / 8;
    out(1) = real(1.6) + at(1, 0, 0, 0) / 4 + real(mesh) / 10;
})
TRIFOLD_POINT_FUNCTION(mirrored_y, {
    out(0) = -real(0.2) + at(1, 0, -1, 0) * at(1, 0, 0, 0) / 8;
    out(2) = -real(0.2) + at(1, 0, 0, 0) * at(1, 0, 1, 0) / 8;
    out(1) = real(1.5) + at(1, 0, 0, 0) / 4 + real(x) / 100;
})
TRIFOLD_POINT_FUNCTION(weak, {
    out(0) = -real(0.5);
    out(2) = -real(0.5);
    out(1) = x == 3 && y == 4 ? real(1) : real(1.5);
})

enum Scheme { increments, halves, three_sweeps, varying, varying_halves, faces, mirrored, mirrored_by_three };  // mirrored_by_three: the same problem, three words a row

std::vector<Sweep> sweeps_of(Scheme scheme, bool solid, const std::array<Sides, 3>& sides, const std::array<Sides, 3>& plain) {
    if (scheme >= varying) {
        const bool both = scheme >= mirrored;
        const LineSolve x{0, {}, both ? mirrored_x : stretched_x}, y{1, {}, both ? mirrored_y : stretched_y}, z{2, {-0.1, 1.3, -0.2}};
        if (scheme != varying_halves) return {{scheme == faces ? faced : flat, solid ? std::vector<LineSolve>{x, y, z} : std::vector<LineSolve>{x, y}, add, 0, sides}};
        return {{flat, {x}, {}, 0, sides}, {flat, {y}, {}, 0, sides}};
    }
    const LineSolve x{0, {-0.3, 1.7, -0.4}}, y{1, {-0.2, 1.5, -0.3}}, z{2, {-0.1, 1.3, -0.2}};
    if (scheme == increments) return {{flat, solid ? std::vector<LineSolve>{x, y, z} : std::vector<LineSolve>{x, y}, add, 0, plain}};
    if (scheme == halves) return {{flat, {x}, {}, 0, sides}, {flat, {y}, {}, 0, sides}};
    return {{solid ? crossed : flat, {z, x, z, y}, add, 0, plain}, {other, {}, {}, 1, {}}, {other, {y}, {}, 1, sides}};
}

constexpr Plan plan_of(Scheme scheme, std::array<int, 3> mesh, int cluster, int threads, int slab_rows, std::array<AxisCut, 3> cut, std::array<int, 3> low, std::array<int, 3> high, int bytes, int turn_rows = 0, unsigned held = 0, int kept = 0, int abreast = 1) {
    Plan plan;
    plan.vector = 16 / bytes;
    const bool solid = mesh[2] > 1, far = scheme == three_sweeps && solid;
    plan.cluster = cluster, plan.threads = threads, plan.slab_rows = slab_rows, plan.abreast = abreast, plan.turn_rows = turn_rows, plan.fields = 3;
    for (int axis = 0; axis < 3; ++axis) plan.mesh[axis] = mesh[axis], plan.cut[axis] = cut[axis];
    for (int f = 0; f < 3; ++f) {
        plan.field[f].kept = scheme >= three_sweeps || f != 1;
        plan.field[f].once = kept > 0 && f > 0 && (f == 1 || scheme != faces);
        plan.field[f].target = f == 0 || (f == 1 && scheme == three_sweeps), plan.field[f].diagonal = far;
        for (int axis = 0; axis < 3; ++axis) {
            if (f < 2) plan.field[f].ghosts[axis] = far ? 2 : axis < 2 ? 1 : 0, plan.field[f].edge[axis][0] = low[axis], plan.field[f].edge[axis][1] = high[axis];
            plan.field[f].one[axis] = f == 2 && axis > 0;
        }
    }
    const auto sweep = [&](std::initializer_list<int> axes, int target) {
        SweepPlan& own = plan.sweep[plan.sweeps++];
        own.first_line = plan.lines, own.lines = static_cast<int>(axes.size()), own.target = target, own.kept = kept;
        for (int v = 0; v < kept; ++v) own.value[v] = {v % 2, v - 2 < 0 ? -1 : v - 2}, own.arrays = 2;
        for (const int axis : axes) plan.line[plan.lines++] = {axis, low[axis] == periodic && mesh[axis] > 2, true, true};
        for (int l = 0; scheme >= varying && l < plan.lines; ++l)
            if (LinePlan& line = plan.line[l]; line.axis < 2) line.constant = false, line.varies = true, line.symmetric = scheme == mirrored, line.held = held >> l & 1, line.edge[0] = low[line.axis], line.edge[1] = high[line.axis];
    };
    const bool all_at_once = scheme == increments || scheme == varying || scheme >= faces;
    if (all_at_once && solid) sweep({0, 1, 2}, 0);
    if (all_at_once && !solid) sweep({0, 1}, 0);
    if (scheme == halves || scheme == varying_halves) sweep({0}, 0), sweep({1}, 0);
    if (scheme == three_sweeps) sweep({2, 0, 2, 1}, 0), sweep({}, 1), sweep({1}, 1);
    return plan;
}

// A point function as it was compiled for the host, its neighbours in shared memory: all of its results.
template <class real, class P>
std::array<real, 3> evaluate(const PointFunction& function, const cuda::resident::Near<P>& near, const real* p, std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t mesh, std::int64_t step) {
    const real* rows[(max_fields + 1) * rows_across * rows_across] = {};
    for (int f = 0; f < P::plan.fields; ++f)
        for (int row = 0; P::plan.field[f].kept && row < rows_across * rows_across; ++row)
            rows[f * rows_across * rows_across + row] =
                near.at_field[f] + (row % rows_across - max_reach) * P::plan.stride(f, 1) + (row / rows_across - max_reach) * P::plan.stride(f, 2);
    rows[(P::plan.fields * rows_across + max_reach) * rows_across + max_reach] = &near.solution;
    std::array<real, 3> result{};
    real* const out[] = {&result[0], &result[1], &result[2]};
    const PointRows<real> call{rows, out, p, 1, x, y, z, mesh, step};
    if constexpr (sizeof(real) == 4) function.run_f32(call);
    else function.run_f64(call);
    return result;
}

inline std::vector<Sweep> running;  // those of the problem that is being run

template <class T, Plan (*make)()>
struct Problem {
    using real = T;
    static constexpr Plan plan = make();
    template <int s>
    static real rhs(const cuda::resident::NearKept<Problem, s>& near, const real* p, std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t mesh, std::int64_t step) {
        if constexpr (plan.sweep[s].kept == 4) return faced_from_kept<s>(near, p, mesh, step);
        else if constexpr (plan.sweep[s].kept > 0) return flat_from_kept<s>(near, p, mesh, step);
        else return evaluate<real>(running[s].rhs, near, p, x, y, z, mesh, step)[0];
    }
    // `flat` cut at its source, and at half of it.
    template <int s>
    static real flat_from_kept(const cuda::resident::NearKept<Problem, s>& near, const real* p, std::int64_t mesh, std::int64_t step) {
        const real u = near.template at<0, 0, 0, 0>();
        return p[0] * ((near.template at<0, -1, 0, 0>() - u) + (near.template at<0, 1, 0, 0>() - u)) + p[1] * ((near.template at<0, 0, -1, 0>() - u) + (near.template at<0, 0, 1, 0>() - u)) +
               (near.template kept<0>() + near.template kept<1>()) / 2 * real(step + mesh) + near.template kept<1>() * real(step + mesh) / 2;
    }
    // `faced` cut at what neighbours share.
    template <int s>
    static real faced_from_kept(const cuda::resident::NearKept<Problem, s>& near, const real* p, std::int64_t mesh, std::int64_t step) {
        const real u = near.template at<0, 0, 0, 0>();
        return p[0] * ((near.template at<0, -1, 0, 0>() - u) + (near.template at<0, 1, 0, 0>() - u)) + p[1] * ((near.template at<0, 0, -1, 0>() - u) + (near.template at<0, 0, 1, 0>() - u)) +
               near.template at<2, 0, 0, 0>() * real(step + mesh) + (near.template kept<0>() - near.template kept<2>()) / 3 + (near.template kept<1>() - near.template kept<3>());
    }
    template <int s>
    static void keep(const cuda::resident::Near<Problem>& near, const real*, real* out, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t) {
        if constexpr (plan.sweep[s].kept == 4) {
            out[0] = near.template at<1, 0, 0, 0>(), out[1] = out[0] / 2, out[2] = near.template at<1, 1, 0, 0>(), out[3] = near.template at<1, 0, 1, 0>() / 2;
        } else {
            out[0] = near.template at<2, 0, 0, 0>(), out[1] = out[0] / 2;
        }
    }
    template <int s>
    static real update(const cuda::resident::Near<Problem>& near, const real* p, std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t mesh, std::int64_t step) {
        return running[s].update ? evaluate<real>(running[s].update, near, p, x, y, z, mesh, step)[0] : near.solution;
    }
    template <int l>
    static void coefficients(const cuda::resident::Near<Problem>& near, const real* p, real* out, std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t mesh, std::int64_t) {
        int first = 0;
        for (const Sweep& sweep : running) {
            const int k = l - first;
            first += static_cast<int>(sweep.lines.size());
            if (l >= first) continue;
            const std::array<real, 3> row = evaluate<real>(sweep.lines[static_cast<std::size_t>(k)].coefficients, near, p, x, y, z, mesh, 0);
            return void(std::copy(row.begin(), row.end(), out));
        }
    }
};

template <class T>
struct Fields {
    std::vector<T> u, v, source;
    MeshShape shape;
    std::array<Sides, 3> sides, plain;

    Fields(const Plan& plan, Random& random) {
        shape = {plan.mesh[0], plan.mesh[1], plan.mesh[2], 2};
        for (std::vector<T>* values : {&u, &v}) {
            values->resize(static_cast<std::size_t>(shape.points()));
            for (T& value : *values) value = static_cast<T>(random.uniform(-1, 1));
        }
        source.resize(static_cast<std::size_t>(shape.x));
        for (T& value : source) value = static_cast<T>(random.uniform(-1, 1));
        for (std::size_t axis = 0; axis < 3; ++axis) {
            sides[axis] = {{static_cast<Edge>(plan.field[0].edge[axis][0]), 0.4}, {static_cast<Edge>(plan.field[0].edge[axis][1]), -0.7}};
            plain[axis] = sides[axis];
            plain[axis].low.value = plain[axis].high.value = 0;
        }
    }

    std::vector<AnyField> all() {
        return {Field<T>::packed(u.data(), shape, sides), Field<T>::packed(v.data(), shape, sides), Field<const T>::strided(source.data(), {1, 0, 0, 0})};
    }
};

const std::vector<double> parameters{0.3, 0.2};
constexpr std::int64_t first_step = 5, steps = 3;

template <class P>
void run_on_host(Fields<typename P::real>& fields, bool reversed, MeshState& state) {
    using T = typename P::real;
    static constexpr Plan plan = P::plan;
    cuda::resident::Arguments<T> a{};
    std::vector<T> table, before[2];
    int l = 0;
    for (const Sweep& sweep : running)
        for (const LineSolve& line : sweep.lines) {
            if (plan.varies(l)) {
                const Sides& sides = sweep.solution[static_cast<std::size_t>(line.axis)];
                a.numbers.ends[l][0] = static_cast<T>(2 * sides.low.value), a.numbers.ends[l][1] = static_cast<T>(2 * sides.high.value);
                ++l;
                continue;
            }
            const auto n = static_cast<std::size_t>(plan.mesh[line.axis]);
            std::vector<T> lower(n, static_cast<T>(line.constant[0])), diag(n, static_cast<T>(line.constant[1])), upper(n, static_cast<T>(line.constant[2]));
            const SegmentShape shape{plan.mesh[line.axis], plan.segments(line.axis), plan.cut[line.axis].rows, plan.padded_rows(line.axis), plan.padded_segments(line.axis), plan.alike(l)};
            ASSERT_TRUE((append_factors<T>(shape, sweep.solution[static_cast<std::size_t>(line.axis)], lower, diag, upper, table, a.numbers.ends[l++])));
        }
    ASSERT_EQ(static_cast<int>(table.size()), plan.table(plan.lines));
    const std::vector<AnyField> all = fields.all();
    for (int f = 0; f < plan.fields; ++f) {
        a.field[f].data = static_cast<T*>(all[static_cast<std::size_t>(f)].data);
        for (std::size_t d = 0; d < 4; ++d) a.field[f].stride[d] = all[static_cast<std::size_t>(f)].stride[d];
        for (std::size_t axis = 0; axis < 3; ++axis) {
            const Sides& sides = all[static_cast<std::size_t>(f)].sides[axis];
            a.field[f].twice[axis][0] = static_cast<T>(2 * sides.low.value), a.field[f].twice[axis][1] = static_cast<T>(2 * sides.high.value);
        }
        if (plan.field[f].target) before[f].resize(fields.u.size()), a.before[f] = before[f].data();
    }
    for (std::size_t k = 0; k < parameters.size(); ++k) a.numbers.parameters[k] = static_cast<T>(parameters[k]);
    a.table = table.data(), a.state = &state, a.first_step = first_step, a.steps = steps;
    for (std::int64_t mesh = 0; mesh < fields.shape.meshes; ++mesh) {
        BlocksOnHost blocks(plan.cluster, plan.threads, (static_cast<std::size_t>(plan.elements()) * sizeof(T) + 63) / 64 * 64, reversed);
        blocks.run([&](unsigned char* shared) { cuda::resident::run<P>(a, reinterpret_cast<T*>(shared), mesh); });
    }
    cuda::resident::put_back<P>(a, fields.shape.points(), 0, 1);
}

template <class P>
void agrees(Scheme scheme, double allowed) {
    using T = typename P::real;
    static Context context({.threads = 1, .profile_path = "none", .log = {}});
    Queue reference(context, "reference");
    Random random(7);
    const Fields<T> start(P::plan, random);
    running = sweeps_of(scheme, P::plan.mesh[2] > 1, start.sides, start.plain);
    Fields<T> expected = start;
    const std::vector<AnyField> all = expected.all();
    ASSERT_TRUE(sweep(reference, {expected.shape, all, running, parameters}, steps, {.first_step = first_step}).ok());
    std::vector<T> other_order;
    for (const bool reversed : {false, true}) {
        Fields<T> ours = start;
        MeshState state;
        ASSERT_NO_FATAL_FAILURE(run_on_host<P>(ours, reversed, state));
        EXPECT_EQ(state.refused_at, MeshState::none);
        for (std::size_t i = 0; i < ours.u.size(); ++i) {
            ASSERT_NEAR(ours.u[i], expected.u[i], allowed) << "u at " << i;
            ASSERT_NEAR(ours.v[i], expected.v[i], allowed) << "v at " << i;
        }
        if (reversed) {
            EXPECT_EQ(ours.u, other_order) << "the order of threads matters: a barrier is missing";
        }
        other_order = ours.u;
    }
}

#define PLAN(NAME, ...) \
    constexpr Plan NAME() { return plan_of(__VA_ARGS__); }

using Cuts = std::array<AxisCut, 3>;
using Edges = std::array<int, 3>;
constexpr Edges odd_sides{odd, odd, odd}, even_sides{even, even, even}, rings{periodic, periodic, periodic}, mixed{even, odd, odd};

template <class P>
bool gives_targets_back(Fields<double>& ours) {
    const std::vector<double> before = ours.u;
    MeshState state;
    run_on_host<P>(ours, false, state);
    return state.refused_at == 0 && ours.u == before;
}

template <class Few, class Many>
void same_bits(Scheme scheme, double allowed) {
    agrees<Few>(scheme, allowed), agrees<Many>(scheme, allowed);
    Random random(11);
    const Fields<typename Few::real> start(Few::plan, random);
    running = sweeps_of(scheme, Few::plan.mesh[2] > 1, start.sides, start.plain);
    auto few = start, many = start;
    MeshState state;
    run_on_host<Few>(few, false, state), run_on_host<Many>(many, false, state);
    EXPECT_EQ(state.refused_at, MeshState::none);
    EXPECT_EQ(few.u, many.u);
    EXPECT_EQ(few.v, many.v);
}

}  // namespace
}  // namespace trifold::tests
