// SPDX-License-Identifier: BSD-3-Clause
// The passes that keep their matrices or make them where they solve, run on the host thread by thread, against the reference; and how lines are cut for them.
#include "unit/cuda_fused_on_host.hpp"

namespace trifold::tests {
namespace {

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
