// SPDX-License-Identifier: BSD-3-Clause
// Passes that make their matrices in registers, run on the host thread by thread, against the reference.
#include "unit/cuda_fused_on_host.hpp"

namespace trifold::tests {
namespace {

/// The right-hand side and the lines along x, `Lanes` to a line.
template <class T, int X, int Y, int Z, int Kind, int Lanes, int Deep>
struct RowsOf : Pass<T, X, Y, Z, Kind, 0, 1, 32, 0, true, true> {
    static constexpr int R = X / Lanes, warps = 2, deep = Deep, along = Z > 1 ? 2 : 1;
    struct window {
        static constexpr int count = 11;
        static constexpr int at(int k, int what) {
            constexpr int star[][3] = {{1, 0, 0}, {0, -1, 0}, {0, 1, 0}, {0, 0, -1}, {0, 0, 1}};
            return what == 0 ? k / 5 : k < 10 ? star[k % 5][what - 1] : 0;
        }
    };
    static constexpr int shared(int value, int what) {
        constexpr int all[][2] = {{0, 1}, {-1, 0}, {along == 1 ? 1 : -1, 3}, {-1, 0}, {along == 2 ? 2 : -1, 5}, {-1, 0}};
        return all[value][what];
    }
    static constexpr bool aligned(int) { return X % (16 / static_cast<int>(sizeof(T))) == 0; }
};

template <class C>
void run_rows(const cuda::MeshArguments<typename C::real>& a, const std::array<Sides, 3>& ends, bool reversed) {
    using T = typename C::real;
    using Own = cuda::fused::Rows<C>;
    const Parameters<T> parameters{{static_cast<T>(numbers[0]), static_cast<T>(numbers[1])}};
    cuda::fused::PassArguments<T> pass{};
    pass.twice[0] = static_cast<T>(2 * ends[0].low.value), pass.twice[1] = static_cast<T>(2 * ends[0].high.value);
    for (std::int64_t mesh = 0; mesh < a.extent[3]; ++mesh)
        for (unsigned piece = 0; piece < Own::pieces; ++piece) {
            BlocksOnHost block(1, Own::threads, 64, reversed);
            block.run([&](unsigned char*) { Own{a, parameters, pass}.run(piece, mesh, cuda::thread_number()); });
        }
}

/// With what meshes share held, some meshes a turn: L lanes to a line, two warps along y, two along z.
template <class T, int X, int Y, int Z, int Kind, int Lanes>
struct HeldOf : RowsOf<T, X, Y, Z, Kind, Lanes, 1> {
    static constexpr unsigned tiled = 1;
    static constexpr int warps = 4, stages = 3, beside = 2;
};

template <class C>
void run_held(const cuda::MeshArguments<typename C::real>& a, const std::array<Sides, 3>& ends, std::int64_t each, bool reversed) {
    using T = typename C::real;
    using Own = cuda::fused::HeldRows<C>;
    const Parameters<T> parameters{{static_cast<T>(numbers[0]), static_cast<T>(numbers[1])}};
    cuda::fused::PassArguments<T> pass{};
    pass.twice[0] = static_cast<T>(2 * ends[0].low.value), pass.twice[1] = static_cast<T>(2 * ends[0].high.value);
    for (std::int64_t mesh = 0; mesh < a.extent[3]; mesh += each)
        for (unsigned piece = 0; piece < Own::pieces; ++piece) {
            BlocksOnHost block(1, Own::threads, (Own::in_memory * sizeof(T) + 63) / 64 * 64, reversed);
            block.run([&](unsigned char* shared) { Own{a, parameters, pass}.run(piece, mesh, std::min(mesh + each, a.extent[3]), cuda::thread_number(), reinterpret_cast<T*>(shared)); });
        }
}

template <class C>
void run_made(const cuda::MeshArguments<typename C::real>& a, const std::array<Sides, 3>& ends, bool reversed) {
    using T = typename C::real;
    using L = cuda::fused::MadeLines<C>;
    const Parameters<T> parameters{{static_cast<T>(numbers[0]), static_cast<T>(numbers[1])}};
    cuda::fused::PassArguments<T> pass{};
    pass.tasks = L::sets * a.extent[3];
    const Sides& own = ends[static_cast<std::size_t>(C::axis)];
    pass.twice[0] = static_cast<T>(2 * own.low.value), pass.twice[1] = static_cast<T>(2 * own.high.value);
    for (std::int64_t task = 0; task < pass.tasks; ++task) {
        BlocksOnHost block(1, L::threads, (static_cast<std::size_t>(L::in_memory) * sizeof(T) + 63) / 64 * 64, reversed);
        block.run([&](unsigned char* shared) { L(a, parameters, reinterpret_cast<T*>(shared), cuda::thread_number()).run(pass, task, cuda::failed_at(a.state) == a.sweep); });
    }
}

/// Increments whose first pass is rows, and whose lines across have S segments, their matrices kept or made.
template <class T, int X, int Y, int Z, int Kind, int Lanes, int Deep, int SY = 0, int SZ = 0>
void rows_agree(double allowed) {
    static Context context({.threads = 1, .profile_path = "none", .log = {}});
    Queue reference(context, "reference");
    Random random(23);
    const Heated<T> start({X, Y, Z, 2}, Kind, random);
    Heated<T> expected = start;
    std::vector<LineSolve> lines{{0, {}, along_x}, {1, {}, along_y}};
    if (Z > 1) lines.push_back({2, {}, along_z});
    const std::vector<Sweep> sweeps{{flow, lines, add, 0, start.sides}};
    const std::vector<AnyField> fields = expected.fields();
    ASSERT_TRUE(sweep(reference, {expected.shape, fields, sweeps, numbers}, 1).ok());
    for (const bool reversed : {false, true}) {
        Heated<T> ours = start;
        MeshState state;
        std::vector<T> values(ours.u.size(), NAN);
        std::vector<unsigned char> failed(2);
        cuda::MeshArguments<T> a = arguments_of(ours, values, failed, state);
        run_rows<RowsOf<T, X, Y, Z, Kind, Lanes, Deep>>(a, ours.sides, reversed);
        EXPECT_EQ(state.failed_at, MeshState::none);
        if constexpr (SY > 0) run_made<Pass<T, X, Y, Z, Kind, 1, SY, 16, Z == 1 ? 2 : 1, true, true>>(a, ours.sides, reversed);
        else run_kept<Pass<T, X, Y, Z, Kind, 1, 2, 16, Z == 1 ? 2 : 1, true, true>>(a, ours.sides, reversed, 2, false, true);
        if constexpr (SZ > 0) run_made<Pass<T, X, Y, Z, Kind, 2, SZ, 16, 2, true, true>>(a, ours.sides, reversed);
        else if constexpr (Z > 1) run_kept<Pass<T, X, Y, Z, Kind, 2, 2, 16, 2, true, true>>(a, ours.sides, reversed, 2, false, true);
        for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(ours.u[i], expected.u[i], allowed) << i;
    }
}

TEST(Fused, RowsWithTheirRightHandSides) {
    rows_agree<double, 16, 9, 11, 0, 4, 3>(1e-14);
    rows_agree<double, 16, 9, 11, 1, 8, 4>(1e-14);
    rows_agree<double, 16, 9, 11, 2, 8, 16>(1e-14);
    rows_agree<float, 32, 5, 7, 0, 8, 2>(5e-6);
    rows_agree<float, 18, 5, 7, 2, 2, 5>(5e-6);
    rows_agree<double, 12, 37, 1, 0, 4, 5>(1e-14);
    rows_agree<double, 12, 37, 1, 2, 4, 1>(1e-14);
    rows_agree<float, 64, 19, 1, 1, 32, 2>(5e-6);
}

/// A batch whose meshes share their conductivity, and the same one after the other: the same bits.
template <class T, int X, int Y, int Z, int Kind, int Lanes>
void held_agree(double allowed) {
    static Context context({.threads = 1, .profile_path = "none", .log = {}});
    Queue reference(context, "reference");
    Random random(29);
    const Heated<T> start({X, Y, Z, 3}, Kind, random);
    Heated<T> expected = start;
    const std::vector<Sweep> sweeps{{flow, {{0, {}, along_x}}, {}, 0, start.sides}};
    const std::vector<AnyField> fields = expected.fields();
    ASSERT_TRUE(sweep(reference, {expected.shape, fields, sweeps, numbers}, 1).ok());
    std::vector<T> found[2];
    for (const std::int64_t each : {1, 2}) {
        Heated<T> ours = start;
        MeshState state;
        std::vector<T>& values = found[each - 1];
        values.assign(ours.u.size(), NAN);
        std::vector<unsigned char> failed(3);
        cuda::MeshArguments<T> a = arguments_of(ours, values, failed, state);
        a.backwards = each == 2;
        run_held<HeldOf<T, X, Y, Z, Kind, Lanes>>(a, ours.sides, each, each == 2);
        EXPECT_EQ(state.failed_at, MeshState::none);
        for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], expected.u[i], allowed) << i;
    }
    EXPECT_EQ(found[0], found[1]);
}

TEST(Fused, RowsThatHoldWhatMeshesShare) {
    held_agree<double, 16, 9, 11, 0, 4>(1e-14);
    held_agree<double, 24, 9, 11, 1, 8>(1e-14);
    held_agree<double, 24, 9, 5, 2, 8>(1e-14);
    held_agree<float, 32, 5, 7, 0, 16>(5e-6);
    held_agree<float, 96, 5, 6, 2, 32>(5e-6);
    held_agree<double, 96, 7, 4, 0, 32>(1e-14);
    held_agree<double, 64, 19, 1, 1, 32>(1e-14);
}

TEST(Fused, LinesAcrossWhoseMatricesAreMade) {
    rows_agree<double, 16, 12, 15, 0, 4, 3, 4, 5>(1e-14);
    rows_agree<double, 16, 12, 14, 1, 4, 3, 2, 7>(1e-14);
    rows_agree<double, 16, 12, 16, 2, 4, 3, 4, 8>(1e-14);
    rows_agree<float, 32, 24, 6, 0, 4, 2, 6, 2>(5e-6);
    rows_agree<double, 12, 36, 1, 0, 4, 5, 9>(1e-14);
}

// A line that is not finite is named, and those that look at it, each once.
template <class Run>
void names_a_line_of_rows(Run run) {
    Random random(24);
    Heated<double> ours({16, 9, 11, 2}, 0, random);
    ours.u[16 * 9 * 11 + 16 * (9 * 4 + 3) + 5] = INFINITY;
    MeshState state;
    std::vector<double> values(ours.u.size());
    std::vector<unsigned char> failed(2);
    run(arguments_of(ours, values, failed, state), ours.plain);
    EXPECT_EQ(state.failed_at, 0u);
    EXPECT_EQ(state.failures[0], 5u);
    EXPECT_EQ(state.first[0] >> 56, 0u);
    EXPECT_EQ(static_cast<std::int64_t>(state.first[0] << 8 >> 12), 16 * 9 * 11 + 16 * 9 * 3 + 16 * 3);
    EXPECT_EQ(failed[1], 1);
}

TEST(Fused, RowsNameALineThatIsNotFinite) {
    names_a_line_of_rows([](const auto& a, const auto& ends) { run_rows<RowsOf<double, 16, 9, 11, 0, 8, 4>>(a, ends, false); });
    names_a_line_of_rows([](const auto& a, const auto& ends) { run_held<HeldOf<double, 16, 9, 11, 0, 8>>(a, ends, 2, false); });
}

}  // namespace
}  // namespace trifold::tests
