// SPDX-License-Identifier: BSD-3-Clause
// The passes that make their matrices where they solve, run on the host thread by thread, against the reference; and how lines are cut for them.
#include "support/blocks_on_host.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "backends/cuda/mesh/fused/prepare.hpp"
#include "backends/cuda/mesh/state.hpp"

namespace trifold::cuda {

inline bool any_of_block(bool one) {
    static bool flags[3];
    static std::vector<int> calls(4096);
    const int call = calls[static_cast<std::size_t>(on_host().thread())]++ % 3;
    if (one) flags[call] = true;
    block_barrier();
    flags[(call + 2) % 3] = false;
    return flags[call];
}
inline void bring_nearer(const void*) {}
template <int bytes>
void bring(void* to, const void* from) {
    std::memcpy(to, from, bytes);
}
inline void brought() {}
inline void refuse(MeshState* state, unsigned long long sweep) { state->refused_at = std::min(state->refused_at, sweep); }
inline unsigned long long failed_at(const MeshState* state) { return state->failed_at; }
inline void report_line(MeshState* state, unsigned long long sweep, unsigned long long key) {
    state->failed_at = std::min(state->failed_at, sweep), state->first[sweep & 1] = std::min(state->first[sweep & 1], key), ++state->failures[sweep & 1];
}

}  // namespace trifold::cuda

#include "backends/cuda/mesh/arguments.hpp"
#include "backends/cuda/mesh/fused/kept.cuh"
#include "backends/cuda/mesh/fused/right_hand_side.cuh"
#include "support/random.hpp"
#include "trifold/trifold.hpp"

// Once for the reference, once for the kernels. Fields: 0 = u, 1 = conductivity, 2 = source, 3 = the solution.
#define FLOW                                                                                                                                      \
    {                                                                                                                                             \
        real u = at(0, 0, 0, 0), k = at(1, 0, 0, 0);                                                                                              \
        out(0) = p(0) * ((k + at(1, -1, 0, 0)) * (at(0, -1, 0, 0) - u) + (k + at(1, 1, 0, 0)) * (at(0, 1, 0, 0) - u) +                            \
                         (k + at(1, 0, -1, 0)) * (at(0, 0, -1, 0) - u) + (k + at(1, 0, 1, 0)) * (at(0, 0, 1, 0) - u) +                            \
                         (k + at(1, 0, 0, -1)) * (at(0, 0, 0, -1) - u) + (k + at(1, 0, 0, 1)) * (at(0, 0, 0, 1) - u)) + p(1) * at(2, 0, 0, 0);    \
    }
// The same, cut at the faces of cells.
#define FACES                                                                                                                              \
    {                                                                                                                                      \
        real k = at(1, 0, 0, 0);                                                                                                           \
        out(0) = k + at(1, -1, 0, 0), out(1) = k + at(1, 1, 0, 0), out(2) = k + at(1, 0, -1, 0), out(3) = k + at(1, 0, 1, 0),              \
        out(4) = k + at(1, 0, 0, -1), out(5) = k + at(1, 0, 0, 1);                                                                         \
    }
#define FLOW_OF_FACES                                                                                                                      \
    {                                                                                                                                      \
        real u = at(0, 0, 0, 0);                                                                                                           \
        out(0) = p(0) * (held(0) * (at(0, -1, 0, 0) - u) + held(1) * (at(0, 1, 0, 0) - u) + held(2) * (at(0, 0, -1, 0) - u) +               \
                         held(3) * (at(0, 0, 1, 0) - u) + held(4) * (at(0, 0, 0, -1) - u) + held(5) * (at(0, 0, 0, 1) - u)) + p(1) * at(2, 0, 0, 0); \
    }
#define AROUND(NEXT, BEFORE)                            \
    {                                                   \
        out(0) = -p(0) * (at(1, 0, 0, 0) + BEFORE) / 2; \
        out(2) = -p(0) * (at(1, 0, 0, 0) + NEXT) / 2;   \
        out(1) = 1 - out(0) - out(2);                   \
    }
#define ALONG_X AROUND(at(1, 1, 0, 0), at(1, -1, 0, 0))
#define ALONG_Y AROUND(at(1, 0, 1, 0), at(1, 0, -1, 0))
#define ALONG_Z AROUND(at(1, 0, 0, 1), at(1, 0, 0, -1))
#define ADD { out(0) = at(0, 0, 0, 0) + at(3, 0, 0, 0); }

#define WITH_ITS_TEXT(NAME, ...) TRIFOLD_POINT_FUNCTION(NAME, __VA_ARGS__)  // expanded first
WITH_ITS_TEXT(flow, FLOW)
WITH_ITS_TEXT(along_x, ALONG_X)
WITH_ITS_TEXT(along_y, ALONG_Y)
WITH_ITS_TEXT(along_z, ALONG_Z)
WITH_ITS_TEXT(add, ADD)
#define LOPSIDED                         \
    {                                    \
        out(0) = -p(0) * at(1, 0, 0, 0); \
        out(2) = out(0) / 2;             \
        out(1) = 1 - out(0) - out(2);    \
    }
WITH_ITS_TEXT(lopsided, LOPSIDED)

namespace trifold::tests {
namespace {

using cuda::MeshState;

template <class T>
struct Parameters {
    T value[2];
    T operator[](int k) const { return value[k]; }
};

/// A pass of axis `Axis` of a mesh with the same kind of sides everywhere. Position: 0 the first of its sweep, 1 between, 2 the last, 3 the only one; Apart: its right-hand side is another's.
template <class T, int X, int Y, int Z, int Kind, int Axis, int Segments, int Wide, int Position, bool Alike, bool Apart = false>
struct Pass {
    using real = T;
    using Parameters = tests::Parameters<T>;
    static constexpr int fields = 3, nx = X, ny = Y, nz = Z, not_finite = -static_cast<int>(Reason::not_finite), axis = Axis, n = Axis == 0 ? X : Axis == 1 ? Y : Z, S = Segments, R = (n + S - 1) / S, W = Wide, line = Axis,
                         target = 0, P = 2, groups = 2, reach_x = 1, reach_y = 1, reach_z = 1;
    static constexpr unsigned used = 1;
    static constexpr bool ring = Kind == 2, has_coefficients = true, alike = Alike, one = false, from_fields = !Apart && (Position == 0 || Position == 3), has_rhs = from_fields, last = Position >= 2, has_update = Position == 2,
                          exchanges = !Apart && Position == 3;
    static constexpr long stride(int field, int d) {
        constexpr long all[][4] = {{1, X, X * Y, X * Y * Z}, {1, X, X * Y, 0}, {1, 0, 0, 0}};
        return all[field][d];
    }
    static constexpr int edge(int field, int, int side) { return Kind == 2 ? 2 : field > 0 ? 0 : end(side); }
    static constexpr int end(int side) { return Kind == 2 ? 2 : Kind == 1 ? 1 - side : side; }

    struct rhs_reads {
        static constexpr int count = 15;
        static constexpr int at(int k, int what) {
            constexpr int star[][3] = {{0, 0, 0}, {-1, 0, 0}, {1, 0, 0}, {0, -1, 0}, {0, 1, 0}, {0, 0, -1}, {0, 0, 1}};
            return what == 0 ? k / 7 : star[k % 7][what - 1];
        }
    };
    struct coefficients_reads {
        static constexpr int count = 3;
        static constexpr int at(int k, int what) { return what == 0 ? 1 : what == Axis + 1 ? k - 1 : 0; }
    };

    struct update_reads {
        static constexpr int count = has_update ? 1 : 0;
        static constexpr int at(int, int) { return 0; }
    };

#define at(f, dx, dy, dz) near.template at<f, dx, dy, dz>()
#define out(k) result[k]
#define p(k) parameters[k]
#define held(k) near.template kept<k>()

    template <class Near>
    static void rhs(const Near& near, const Parameters& parameters, real* result, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t) {
        if constexpr (kept > 0 && requires { near.template kept<0>(); }) FLOW_OF_FACES
        else FLOW
    }
    template <class Near>
    static void keep(const Near& near, const Parameters&, real* result, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t) FACES
    // Faces are shared by the cells on both sides of them; but for one kind of sides, where nothing is kept.
    static constexpr int kept = Kind == 1 ? 0 : 6, points = X * Y * Z;
    static constexpr long place(int value, int what) {
        constexpr long all[][3] = {{0, -1, 0}, {0, 0, 3 * points}, {points, -1, 0}, {points, 1, 3 * points + Y * Z}, {2 * points, -1, 0}, {2 * points, 2, 3 * points + Y * Z + X * Z}};
        return all[value][what];
    }
    static constexpr long all_kept = 3 * points + Y * Z + X * Z + X * Y, kept_words = Alike ? 0 : all_kept;
    template <class Near>
    static void coefficients(const Near& near, const Parameters& parameters, real* result, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t) {
        if constexpr (Axis == 0) ALONG_X
        if constexpr (Axis == 1) ALONG_Y
        if constexpr (Axis == 2) ALONG_Z
    }
    template <class Near>
    static void unlike(const Near& near, const Parameters& parameters, real* result) LOPSIDED
    template <class Near>
    static void update(const Near& near, const Parameters&, real* result, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t) ADD
};

#undef at
#undef out
#undef p
#undef held

/// All lines have one matrix of constants.
template <class P>
struct OfConstants : P {
    static constexpr bool has_coefficients = false, alike = true, one = true;
};

template <class P>
struct Lopsided : P {
    template <class Near, class... Place>
    static void coefficients(const Near& near, const typename P::Parameters& p, typename P::real* out, Place...) {
        P::unlike(near, p, out);
    }
};

/// A matrix that needs pivots.
template <class P>
struct Weak : P {
    template <class Near, class... Place>
    static void coefficients(const Near& near, const typename P::Parameters& p, typename P::real* out, Place... place) {
        P::coefficients(near, p, out, place...);
        if (near.template at<1, 0, 0, 0>() > 2.9) out[1] = out[0] + out[2];
    }
};

template <class T>
struct Heated {
    MeshShape shape;
    std::array<Sides, 3> sides{}, plain{}, mirrored{};
    std::vector<T> u, k, source;

    Heated(const MeshShape& s, int kind, Random& random) : shape(s), u(static_cast<std::size_t>(s.points())), k(static_cast<std::size_t>(s.x * s.y * s.z)), source(static_cast<std::size_t>(s.x)) {
        const Edge low = kind == 2 ? Edge::periodic : kind == 1 ? Edge::odd : Edge::even, high = kind == 2 ? Edge::periodic : kind == 1 ? Edge::even : Edge::odd;
        for (std::size_t axis = 0; axis < 3; ++axis) {
            sides[axis] = {{low, 0.4}, {high, -0.7}}, plain[axis] = {{low}, {high}};
            if (kind == 2) mirrored[axis] = plain[axis];
        }
        for (T& v : u) v = static_cast<T>(random.uniform(-1, 1));
        for (T& v : k) v = static_cast<T>(random.uniform(0.1, 3));
        for (T& v : source) v = static_cast<T>(random.uniform(-1, 1));
    }
    std::vector<AnyField> fields() {
        return {Field<T>::packed(u.data(), shape, sides), Field<const T>::strided(k.data(), {1, shape.x, shape.x * shape.y, 0}, mirrored), Field<const T>::strided(source.data(), {1, 0, 0, 0})};
    }
};

constexpr double numbers[] = {0.4, 0.3}, constants[] = {-0.7, 2, -0.6};

template <class C>
void run_pass(const cuda::MeshArguments<typename C::real>& a, const std::array<Sides, 3>& ends, bool reversed, int blocks) {
    using T = typename C::real;
    using L = cuda::fused::Lines<C>;
    cuda::fused::PassArguments<T> pass{};
    pass.tasks = L::sets * a.extent[3];
    const Sides& own = ends[static_cast<std::size_t>(C::axis)];
    pass.twice[0] = static_cast<T>(2 * own.low.value), pass.twice[1] = static_cast<T>(2 * own.high.value);
    const Parameters<T> parameters{{static_cast<T>(numbers[0]), static_cast<T>(numbers[1])}};
    for (int b = 0; b < blocks; ++b) {
        BlocksOnHost block(1, L::threads, (static_cast<std::size_t>(L::in_memory) * sizeof(T) + 63) / 64 * 64, reversed);
        block.run([&](unsigned char* shared) {
            const L lines(a, parameters, reinterpret_cast<T*>(shared), cuda::thread_number());
            lines.run(pass, b, blocks);
        });
    }
}

/// The same with its matrix kept from before, and before it the right-hand side where it is the first one. Symmetric: only half of the couplings are read.
template <class C>
unsigned run_kept(const cuda::MeshArguments<typename C::real>& a, const std::array<Sides, 3>& ends, bool reversed, int blocks, bool first, bool symmetric) {
    using T = typename C::real;
    using L = cuda::fused::KeptLines<C>;
    using Rhs = cuda::fused::RightHandSides<C>;
    const Parameters<T> parameters{{static_cast<T>(numbers[0]), static_cast<T>(numbers[1])}};
    cuda::fused::PassArguments<T> pass{};
    pass.tasks = L::sets * a.extent[3];
    const Sides& own = ends[static_cast<std::size_t>(C::axis)];
    pass.twice[0] = static_cast<T>(2 * own.low.value), pass.twice[1] = static_cast<T>(2 * own.high.value);
    for (std::size_t c = 0; c < 3; ++c) pass.constant[c] = static_cast<T>(constants[c]);
    std::vector<T> faces(static_cast<std::size_t>(C::all_kept * (C::alike ? 1 : a.extent[3])), T(NAN));
    for (std::int64_t mesh = 0; first && C::kept > 0 && mesh < (C::alike ? 1 : a.extent[3]); ++mesh)
        for (int at = 0; at < C::points; ++at) cuda::fused::keep_values_of<C>(a, parameters, faces.data(), mesh, at);
    if (first)
        for (unsigned task = 0; task < Rhs::pieces * a.extent[3]; ++task)
            for (int t = 0; t < Rhs::threads; ++t) Rhs{a, parameters, faces.data()}.run(task, t);
    std::vector<T> memory(static_cast<std::size_t>(L::words * L::sets * (C::alike ? 1 : a.extent[3])), T(NAN));
    unsigned asymmetric = 0;
    for (const bool keeps : {true, false}) {
        const cuda::fused::KeptArguments<T> kept{memory.data(), &asymmetric, symmetric};
        for (int b = 0; b < blocks; ++b) {
            BlocksOnHost block(1, L::threads, (static_cast<std::size_t>(L::in_memory(kept.symmetric && !keeps)) * sizeof(T) + 63) / 64 * 64, reversed);
            block.run([&](unsigned char* shared) {
                const L lines(a, parameters, reinterpret_cast<T*>(shared), cuda::thread_number());
                if (keeps) lines.keep(pass, kept, b, blocks);
                else lines.begin(pass, kept, b, blocks), lines.run(pass, kept, b, blocks, cuda::failed_at(a.state) == a.sweep);
            });
        }
    }
    return asymmetric;
}

template <class T>
cuda::MeshArguments<T> arguments_of(Heated<T>& heated, std::vector<T>& values, std::vector<unsigned char>& failed, MeshState& state) {
    cuda::MeshArguments<T> a{};
    a.extent[0] = heated.shape.x, a.extent[1] = heated.shape.y, a.extent[2] = heated.shape.z, a.extent[3] = heated.shape.meshes;
    int f = 0;
    for (const AnyField& field : heated.fields()) a.field[f++] = cuda::field_view<T>(field);
    a.values = values.data(), a.failed = failed.data(), a.state = &state;
    return a;
}

/// Increments, then a sweep of one line solve each that reads its target around its points.
template <class T, int X, int Y, int Z, int Kind, int S, int W, bool Alike>
void agrees(double allowed) {
    static Context context({.threads = 1, .profile_path = "none", .log = {}});
    Queue reference(context, "reference");
    Random random(17);
    const Heated<T> start({X, Y, Z, 3}, Kind, random);
    Heated<T> expected = start;
    const std::vector<Sweep> sweeps{{flow, {{0, {}, along_x}, {1, {}, along_y}, {2, {}, along_z}}, add, 0, start.plain}, {flow, {{1, {}, along_y}}, {}, 0, start.sides}};
    const std::vector<AnyField> fields = expected.fields();
    ASSERT_TRUE(sweep(reference, {expected.shape, fields, sweeps, numbers}, 1).ok());
    for (const bool reversed : {false, true})
        for (const int blocks : {1, 4}) {
            Heated<T> ours = start;
            MeshState state;
            std::vector<T> values(ours.u.size(), NAN);
            std::vector<unsigned char> failed(3);
            cuda::MeshArguments<T> a = arguments_of(ours, values, failed, state);
            run_pass<Pass<T, X, Y, Z, Kind, 0, S, W, 0, Alike>>(a, ours.plain, reversed, blocks);
            a.backwards = true;
            run_pass<Pass<T, X, Y, Z, Kind, 1, S, W, 1, Alike>>(a, ours.plain, reversed, blocks);
            run_pass<Pass<T, X, Y, Z, Kind, 2, S, W, 2, Alike>>(a, ours.plain, reversed, blocks);
            a.sweep = 1;
            run_pass<Pass<T, X, Y, Z, Kind, 1, S, W, 3, Alike>>(a, ours.sides, reversed, blocks);
            EXPECT_EQ(state.failed_at, MeshState::none);
            for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], expected.u[i], allowed) << i;
            for (const bool symmetric : {true, false}) {
                ours = start, state = {};
                values.assign(values.size(), NAN);
                a = arguments_of(ours, values, failed, state);
                unsigned asymmetric = 0;
                asymmetric |= run_kept<Pass<T, X, Y, Z, Kind, 0, S, W, 0, Alike, true>>(a, ours.plain, reversed, blocks, true, symmetric);
                a.backwards = true;
                asymmetric |= run_kept<Pass<T, X, Y, Z, Kind, 1, S, W, 1, Alike, true>>(a, ours.plain, reversed, blocks, false, symmetric);
                asymmetric |= run_kept<Pass<T, X, Y, Z, Kind, 2, S, W, 2, Alike, true>>(a, ours.plain, reversed, blocks, false, symmetric);
                a.sweep = 1;
                asymmetric |= run_kept<Pass<T, X, Y, Z, Kind, 1, S, W, 3, Alike, true>>(a, ours.sides, reversed, blocks, true, symmetric);
                EXPECT_EQ(state.failed_at, MeshState::none);
                EXPECT_EQ(state.refused_at, MeshState::none);
                EXPECT_EQ(asymmetric, 0u);
                for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(ours.u[i], expected.u[i], allowed) << i;
            }
        }
}

TEST(Fused, Lines) {
    agrees<double, 13, 9, 11, 0, 1, 32, false>(1e-14);
    agrees<double, 13, 9, 11, 1, 2, 16, false>(1e-14);
    agrees<double, 13, 9, 11, 0, 4, 8, true>(1e-14);
    agrees<float, 13, 9, 11, 1, 3, 32, true>(5e-6);
    agrees<double, 8, 16, 12, 1, 4, 8, false>(1e-14);
    agrees<double, 4, 5, 6, 0, 4, 8, true>(1e-14);
}

TEST(Fused, Rings) {
    agrees<double, 13, 9, 11, 2, 2, 16, false>(1e-14);
    agrees<double, 13, 9, 11, 2, 3, 32, true>(1e-14);
    agrees<float, 13, 9, 11, 2, 4, 8, false>(5e-6);
    agrees<double, 3, 4, 5, 2, 2, 16, true>(1e-14);
    agrees<double, 8, 16, 12, 2, 4, 8, false>(1e-14);
}

/// One line solve of what the field holds, its matrix kept.
template <template <class> class Kind, int Axis, int Sides>
void solves(const LineSolve& line, bool symmetric, bool refused = false) {
    static Context context({.threads = 1, .profile_path = "none", .log = {}});
    Queue reference(context, "reference");
    Random random(19);
    Heated<double> ours({13, 9, 11, 3}, Sides, random);
    Heated<double> expected = ours;
    const std::vector<Sweep> sweeps{{{}, {line}, {}, 0, ours.sides}};
    const std::vector<AnyField> fields = expected.fields();
    if (!refused) {
        ASSERT_TRUE(sweep(reference, {expected.shape, fields, sweeps, numbers}, 1).ok());
    }
    MeshState state;
    std::vector<double> values = ours.u;
    std::vector<unsigned char> failed(3);
    const cuda::MeshArguments<double> a = arguments_of(ours, values, failed, state);
    const unsigned asymmetric = run_kept<Kind<Pass<double, 13, 9, 11, Sides, Axis, 3, 32, 3, false, true>>>(a, ours.sides, false, 3, false, symmetric);
    EXPECT_EQ(asymmetric == 0, symmetric);
    EXPECT_EQ(state.refused_at, refused ? 0 : MeshState::none);
    for (std::size_t i = 0; !refused && i < values.size(); ++i) ASSERT_NEAR(ours.u[i], expected.u[i], 1e-14) << i;
}

TEST(Fused, KeptMatrices) {
    solves<OfConstants, 0, 1>({0, {-0.7, 2, -0.6}}, false);
    solves<OfConstants, 1, 2>({1, {-0.7, 2, -0.6}}, false);
    solves<Lopsided, 0, 0>({0, {}, lopsided}, false);
    solves<Lopsided, 2, 1>({2, {}, lopsided}, false);
    solves<Lopsided, 1, 2>({1, {}, lopsided}, false);
    solves<Weak, 1, 1>({1, {}, along_y}, true, true);
}

// A line that is not finite is named, the lines beside it and the other meshes are as they should be, and its own mesh keeps what it had there.
template <bool Alike, bool Kept>
void names_a_line() {
    Random random(18);
    Heated<double> ours({13, 9, 11, 3}, 0, random);
    Heated<double> good = ours;
    ours.u[13 * 9 * 11 + 13 * (9 * 4 + 3) + 5] = INFINITY;
    std::vector<double> results[2];
    MeshState state;
    for (Heated<double>* one : {&good, &ours}) {
        std::vector<double> values(one->u.size(), NAN);
        std::vector<unsigned char> failed(3);
        state = {};
        const cuda::MeshArguments<double> a = arguments_of(*one, values, failed, state);
        const std::vector<double> before = one->u;
        if (Kept) run_kept<Pass<double, 13, 9, 11, 0, 1, 2, 16, 3, Alike, true>>(a, one->sides, false, 2, true, true);
        else run_pass<Pass<double, 13, 9, 11, 0, 1, 2, 16, 3, Alike>>(a, one->sides, false, 2);
        results[one == &ours] = Kept ? one->u : values;
        one->u = before;
    }
    EXPECT_EQ(state.failed_at, 0u);
    EXPECT_EQ(state.failures[0], 5u) << "its own line, and those that look at it";
    EXPECT_EQ(state.first[0] >> 56, 1u);
    EXPECT_EQ(static_cast<std::int64_t>(state.first[0] << 8 >> 12), 13 * 9 * 11 + 13 * 9 * 3 + 5);
    for (std::int64_t i = 0; i < ours.shape.points(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        const std::int64_t x = i % 13, z = i / (13 * 9) % 11, mesh = i / (13 * 9 * 11);
        const bool lost = mesh == 1 && std::abs(x - 5) + std::abs(z - 4) <= 1;
        EXPECT_EQ(results[1][at], lost ? ours.u[at] : results[0][at]) << i;
    }
}

TEST(Fused, ALineThatIsNotFiniteIsNamed) {
    names_a_line<false, false>();
    names_a_line<true, false>();
    names_a_line<false, true>();
    names_a_line<true, true>();
}

TEST(Fused, EveryCutFits) {
    const cuda::Chip chip;
    for (const std::size_t bytes : {4u, 8u})
        for (int axis = 0; axis < 3; ++axis)
            for (const bool ring : {false, true})
                for (int n = 3; n <= 1024; n += 1 + n / 9) {
                    const cuda::fused::Cut cut = cuda::fused::cut_lines(chip, bytes, {axis, n, 1000, ring});
                    ASSERT_TRUE(cut.fits()) << n << " rows of " << bytes << " bytes along " << axis;
                    ASSERT_GE(cut.segments * cut.rows, n);
                    ASSERT_LT(cut.segments * (cut.rows - 1), n) << "segments differ by one row at most";
                    ASSERT_LE(cut.shared, chip.shared_per_block);
                    ASSERT_EQ(cut.threads, cut.columns * cut.segments);
                    if (ring) {
                        ASSERT_GE(cut.segments, 2);
                    }
                    const cuda::fused::Cut one = cuda::fused::cut_kept(chip, bytes, {axis, n, 1000, ring}, 1), many = cuda::fused::cut_kept(chip, bytes, {axis, n, 1000, ring}, 300);
                    ASSERT_TRUE(one.fits()) << n << " rows of " << bytes << " bytes along " << axis;
                    ASSERT_EQ(one.rows, many.rows) << "a mesh has the same bits alone and among others";
                    ASSERT_EQ(one.segments, many.segments);
                    for (const cuda::fused::Cut& kept : {one, many}) {
                        ASSERT_GE(kept.segments * kept.rows, n);
                        ASSERT_LT(kept.segments * (kept.rows - 1), n);
                        ASSERT_LE(kept.shared, chip.shared_per_block);
                        ASSERT_LE(kept.threads, 1024);
                        ASSERT_EQ(kept.threads, kept.columns * kept.segments);
                    }
                }
}

}  // namespace
}  // namespace trifold::tests
