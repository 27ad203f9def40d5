// SPDX-License-Identifier: BSD-3-Clause
// Streaming kernels without a GPU: how rows are cut, and whether the factors for lanes solve lines.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <vector>

#include "backends/cuda/mesh/streaming/cut.hpp"
#include "backends/cuda/mesh/streaming/line_table.hpp"
#include "backends/cuda/mesh/streaming/prepare.hpp"
#include "support/random.hpp"

namespace trifold::cuda::streaming {
namespace {

// A mesh has the same roundings alone and among others: what they depend on must not change with the batch.
TEST(RowsCutForABatch, HasTheSegmentsOfASingleMesh) {
    const Chip chip;
    for (const std::size_t bytes : {4, 8})
        for (const int n : {3, 5, 17, 33, 64, 80, 96, 97, 128, 256, 500, 640, 896, 1000, 1024})
            for (const int nz : {1, n}) {
                const Reach reach{1, 1, 1, nz > 1 ? 1 : 0};
                const RowsCut one = cut_rows(chip, bytes, n, n, nz, 1, reach);
                ASSERT_TRUE(one.fits()) << n;
                for (const std::int64_t meshes : {2, 12, 60, 1500}) {
                    const RowsCut many = cut_rows(chip, bytes, n, n, nz, meshes, reach);
                    EXPECT_EQ(many.lanes, one.lanes) << n;
                    EXPECT_EQ(many.segment_rows, one.segment_rows) << n;
                }
                EXPECT_GE(one.lanes * one.segment_rows, n);
                EXPECT_LE(one.shared, chip.shared_per_block);
                EXPECT_LE(one.threads, 1024);
            }
}

// The last lane of a row alone knows what lies beyond the side.
TEST(RowsCut, LeavesTheLastLaneWhatLooksBeyondTheSide) {
    for (const std::size_t bytes : {4, 8})
        for (const int x : {1, 2})
            for (int n = 3; n <= 1024; n += n < 140 ? 1 : 31) {
                const RowsCut cut = cut_rows(Chip{}, bytes, n, 64, 50, 66, {1, x, 1, 1});
                ASSERT_TRUE(cut.fits()) << n;
                EXPECT_GE(n - (n - 1) / cut.segment_rows * cut.segment_rows, x) << n;
            }
}

// Timed both ways on an H200.
TEST(Parts, AreTakenWhereTheyWereFaster) {
    const Chip chip;
    const auto faster = [&](std::size_t bytes, int nx, int ny, int nz, std::int64_t meshes) {
        const Reach reach{1, 1, 1, 1};
        const int H = cut_segment(chip, bytes, nx, ny, nz);
        const RowsCut one = cut_rows(chip, bytes, nx, ny, nz, 1, reach, {.alike = true}, H), rows = cut_rows(chip, bytes, nx, ny, nz, meshes, reach, {.alike = true}, H, &one, true);
        const ColumnsCut shape = cut_columns(chip, bytes, nz, 1, {.nx = nx});
        const ColumnsCut columns = cut_columns(chip, bytes, nz, 1, {.nx = nx, .tasks_per_piece = ny / H * meshes, .segment_rows = shape.segment_rows, .segments = shape.segments});
        return parts_are_faster(chip, bytes, nx, ny, nz, meshes, rows, columns, H);
    };
    EXPECT_TRUE(faster(4, 96, 96, 96, 72) && faster(8, 96, 96, 96, 72) && faster(4, 512, 512, 512, 1) && faster(8, 64, 64, 64, 128) && faster(4, 96, 96, 96, 24));
    EXPECT_FALSE(faster(8, 80, 64, 64, 24) || faster(4, 80, 80, 80, 72) || faster(4, 72, 72, 72, 24) || faster(4, 256, 64, 64, 8) || faster(8, 128, 128, 128, 1));
}

// All steps in one launch or a launch per pass: the same segments, and so the same roundings.
TEST(WholeCut, HasTheSegmentsOfPasses) {
    const Chip chip;
    const Reach reach{1, 1, 1, 1};
    int taken = 0;
    for (const std::size_t bytes : {4, 8})
        for (const int n : {32, 48, 64, 80, 96, 100})
            for (const std::int64_t meshes : {1, 2, 7}) {
                const RowsCut rows = cut_rows(chip, bytes, n, n, n, meshes, reach);
                const ColumnsCut y = cut_columns(chip, bytes, n, 0), z = cut_columns(chip, bytes, n, 1);
                const std::int64_t count = std::int64_t{n} * n * meshes;
                const WholeCut cut = cut_whole(chip, bytes, n, n, n, meshes, reach, rows, {{n, n, count, y}, {n, std::int64_t{n} * n, count, z}});
                if (!cut.fits()) continue;
                ++taken;
                EXPECT_EQ(cut.rows.lanes, rows.lanes) << n;
                EXPECT_EQ(cut.rows.segment_rows, rows.segment_rows) << n;
                ASSERT_EQ(cut.columns.size(), 2U);
                for (const auto& [own, alone, inner] : {std::tuple{cut.columns[0], y, std::int64_t{n}}, {cut.columns[1], z, std::int64_t{n} * n}}) {
                    EXPECT_EQ(own.segment_rows, alone.segment_rows) << n;
                    EXPECT_EQ(own.segments, alone.segments) << n;
                    EXPECT_EQ(own.segments * own.segment_rows, n) << "nothing has a rest";
                    EXPECT_EQ(inner % own.columns, 0) << n;
                    EXPECT_LE(own.threads, cut.threads);
                }
                EXPECT_LE(cut.rows.threads, cut.threads);
                EXPECT_LE(cut.threads, 1024);
                EXPECT_LE(cut.shared, chip.shared_per_block);
            }
    EXPECT_GE(taken, 12);
}

/// Of closings by segment, what the first segment has before its rows; `last` loses what the ring takes.
double close(const double* closing, int segments, double first, std::vector<double>& last) {
    const double s = closing[0] * first + closing[1] * last.front() + closing[4 * (segments - 1) + 1] * last[static_cast<std::size_t>(segments) - 1];
    for (int k = 0; k < segments; ++k) last[static_cast<std::size_t>(k)] -= closing[4 * k + 2] * s;
    return s;
}

// lanes.cuh, a lane after the other: segments, the scans of the join, and back.
std::vector<double> solve(const LaneTable<double>& table, int n, int R, int lanes, bool alike, const std::vector<double>& right, bool ring = false) {
    const int segments = (n + R - 1) / R, tables = alike ? 3 : lanes;
    const double *const ahead = table.values.data(), *const back = ahead + 2 * R * tables, *const reach = back + 2 * R * tables, *const joins = ahead + (5 * R * tables + 1) / 2 * 2;
    const auto table_of = [&](int s) { return !alike ? s : s == 0 || s >= segments ? 0 : s == segments - 1 ? 2 : 1; };
    const auto begin = [&](int s) { return s == segments - 1 ? n - R : s * R; };
    std::vector<std::vector<double>> y(static_cast<std::size_t>(lanes), std::vector<double>(static_cast<std::size_t>(R)));
    std::vector<double> first(static_cast<std::size_t>(lanes)), x = first;
    for (int s = 0; s < lanes; ++s) {
        auto& own = y[static_cast<std::size_t>(s)];
        const int t = table_of(s);
        for (int i = 0; i < R; ++i) {
            const double d = s < segments ? right[static_cast<std::size_t>(begin(s) + i)] : 1;  // idle lanes have something
            own[static_cast<std::size_t>(i)] = d * ahead[2 * (i * tables + t)] - (i ? ahead[2 * (i * tables + t) + 1] * own[static_cast<std::size_t>(i - 1)] : 0);
            if (i < R - 1) first[static_cast<std::size_t>(s)] += reach[i * tables + t] * own[static_cast<std::size_t>(i)];
        }
    }
    const auto at = [&](const std::vector<double>& v, int s) { return s >= 0 && s < lanes ? v[static_cast<std::size_t>(s)] : 0; };
    std::vector<double> up, down;
    for (int s = 0; s < lanes; ++s) {
        x[static_cast<std::size_t>(s)] = (y[static_cast<std::size_t>(s)].back() - joins[4 * s] * at(first, s + 1)) * joins[4 * s + 2];
        up.push_back(s ? -joins[4 * s + 1] : 0), down.push_back(s + 1 < lanes ? -joins[4 * s + 3] : 0);
    }
    for (const int way : {-1, 1}) {
        std::vector<double>& m = way < 0 ? up : down;
        for (int apart = 1; apart < lanes; apart *= 2) {
            const std::vector<double> x_before = x, m_before = m;
            for (int s = 0; s < lanes; ++s) {
                x[static_cast<std::size_t>(s)] += m_before[static_cast<std::size_t>(s)] * at(x_before, s + way * apart);
                m[static_cast<std::size_t>(s)] *= at(m_before, s + way * apart);
            }
        }
    }
    std::vector<double> solution(static_cast<std::size_t>(n));
    const double closed = ring ? close(joins + 4 * lanes, segments, first[0], x) : 0;
    for (int s = 0; s < segments; ++s) {
        auto& own = y[static_cast<std::size_t>(s)];
        own.back() = at(x, s);
        const int t = table_of(s);
        for (int i = R - 2; i >= 0; --i) own[static_cast<std::size_t>(i)] -= back[2 * (i * tables + t) + 1] * (s ? at(x, s - 1) : closed) + back[2 * (i * tables + t)] * own[static_cast<std::size_t>(i + 1)];
        for (int i = R - 1; i >= 0 && begin(s) + i >= s * R; --i) solution[static_cast<std::size_t>(begin(s) + i)] = own[static_cast<std::size_t>(i)];
    }
    return solution;
}

/// A dominant system with its solution.
struct Line {
    LineMatrix<double> m;
    std::vector<double> exact, right;

    /// `alike`: rows but the first and the last one are the same; `mirrored`: from its last row on the matrix is as from its first; `ring`: its ends are coupled.
    Line(tests::Random& random, int n, bool alike = false, bool mirrored = false, bool ring = false) {
        const double low = random.uniform(-1, 1), high = random.uniform(-1, 1), pivot = random.uniform(2.1, 4);
        for (int i = 0; i < n; ++i) {
            const bool same = alike && i && i + 1 < n;
            m.lower.push_back(same ? low : i || ring ? random.uniform(-1, 1) : 0), m.upper.push_back(same ? high : i + 1 < n || ring ? random.uniform(-1, 1) : 0), m.diag.push_back(same ? pivot : random.uniform(2.1, 4));
            exact.push_back(random.uniform(-1, 1));
        }
        for (std::size_t k = 0, end = mirrored ? m.diag.size() : 0; k < end; ++k) m.upper[k] = m.lower[end - 1 - k], m.diag[k] = m.diag[end - 1 - k];
        for (int i = 0; i < n; ++i) {
            const auto k = static_cast<std::size_t>(i);
            right.push_back(m.diag[k] * exact[k] + m.lower[k] * (i ? exact[k - 1] : exact.back()) + m.upper[k] * (i + 1 < n ? exact[k + 1] : exact.front()));
        }
        if (ring) open(m);
    }
};

TEST(LaneTable, SolvesLinesOfAnyLength) {
    tests::Random random(3);
    for (const int n : {2, 3, 7, 31, 64, 96, 97, 200, 640})
        for (const int lanes : {1, 2, 4, 8, 16, 32})
            for (int R = std::max((n + lanes - 1) / lanes, 2); R <= std::min(n, (n + lanes - 1) / lanes + 3); ++R) {
                for (const bool alike : {false, true}) {
                    if (alike && (n + R - 1) / R < 3) continue;
                    const auto [m, exact, right] = Line(random, n, alike);
                    ASSERT_TRUE(!alike || same_rows(m));
                    const LaneTable<double> table(m, R, lanes, alike);
                    ASSERT_TRUE(table.safe);
                    const std::vector<double> found = solve(table, n, R, lanes, alike, right);
                    for (std::size_t i = 0; i < exact.size(); ++i) ASSERT_NEAR(found[i], exact[i], 1e-14) << n << " rows, " << lanes << " lanes of " << R << ", row " << i;
                    // The same numbers, kept once.
                    if (alike) {
                        ASSERT_EQ(found, solve(LaneTable<double>(m, R, lanes), n, R, lanes, false, right));
                    }
                }
            }
}

TEST(LaneTable, SolvesRings) {
    tests::Random random(6);
    for (const int n : {3, 7, 31, 64, 96, 97, 200, 640})
        for (const int lanes : {2, 4, 8, 16, 32})
            for (int R = std::max((n + lanes - 1) / lanes, 2); R < std::min(n, (n + lanes - 1) / lanes + 3); ++R)
                for (const bool alike : {false, true}) {
                    if (alike && (n + R - 1) / R < 3) continue;
                    const auto [m, exact, right] = Line(random, n, alike, false, true);
                    const LaneTable<double> table(m, R, lanes, alike);
                    ASSERT_TRUE(table.safe);
                    const std::vector<double> found = solve(table, n, R, lanes, alike, right, true);
                    for (std::size_t i = 0; i < exact.size(); ++i) ASSERT_NEAR(found[i], exact[i], 1e-14) << n << " rows, " << lanes << " lanes of " << R << ", row " << i;
                }
    EXPECT_FALSE(LaneTable<double>(Line(random, 8, false, false, true).m, 8, 1).safe) << "one segment is no ring";
}

// An elimination without pivots that grows, and a ring that is singular though the line that it is opened to is not.
TEST(LaneTable, RefusesRingsThatAreNotSafe) {
    LineMatrix<double> waves, singular;
    for (int i = 0; i < 40; ++i) {
        waves.lower.push_back(1), waves.diag.push_back(1e-3), waves.upper.push_back(1);
        singular.lower.push_back(-1), singular.diag.push_back(2), singular.upper.push_back(-1);
    }
    open(waves), open(singular);
    EXPECT_FALSE(LaneTable<double>(waves, 5, 8).safe);
    EXPECT_FALSE(LaneTable<double>(singular, 5, 8).safe);
    EXPECT_FALSE(LineTable<double>(singular, 5, 8).safe);
}

// Lines along y in parts: forwards as rows go along them (rows.cuh), ends of segments (joins.cuh), backwards as columns do (columns.cuh).
void solve_in_parts(bool ring) {
    tests::Random random(4);
    const Chip chip;
    int cut = 0;
    for (const int n : {8, 24, 32, 48, 64, 80, 96, 128, 256, 384, 512}) {
        const int H = cut_segment(chip, 8, n, n, n), S = H ? n / H : 0;
        if (H == 0 || (ring && S < 2)) continue;
        ++cut;
        ASSERT_EQ(S * H, n);
        const Line line(random, n), parted(random, n, false, false, ring);
        const auto& [m, exact, right] = parted;
        Pass rows, joins, columns;
        rows.rows.lanes = 1, rows.rows.segment_rows = n, columns.columns.columns = 1, columns.columns.segment_rows = n, columns.columns.segments = 1;
        std::vector<double> ahead, ends, behind;
        rows.kind = PassKind::rows, joins.kind = PassKind::joins, columns.kind = PassKind::columns;
        for (Pass* const pass : {&rows, &joins, &columns}) pass->segment = H;
        ASSERT_TRUE(append_factors(line.m, m, rows, ahead) && append_factors(line.m, m, joins, ends) && append_factors(line.m, m, columns, behind));
        const double *const forwards = ahead.data() + 5 * n + 4, *const backwards = behind.data() + 4 * n + 4;
        ASSERT_EQ(ends.size(), static_cast<std::size_t>((ring ? 8 : 4) * S));
        std::vector<double> y(static_cast<std::size_t>(n)), z(static_cast<std::size_t>(S) + 1), x(y.size()), last(z.size());
        for (int i = 0; i < n; ++i) {
            const auto k = static_cast<std::size_t>(i);
            y[k] = right[k] * forwards[3 * i] - (i % H ? forwards[3 * i + 1] * y[k - 1] : 0);
            if (i % H < H - 1) z[static_cast<std::size_t>(i / H)] += forwards[3 * i + 2] * y[k];
        }
        double gamma = 0, next = 0;
        for (int s = 0; s < S; ++s) {
            const auto k = static_cast<std::size_t>(s);
            last[k] = gamma = (y[static_cast<std::size_t>((s + 1) * H - 1)] - ends[4 * k] * (s + 1 < S ? z[k + 1] : 0)) * ends[4 * k + 2] - ends[4 * k + 1] * gamma;
        }
        for (int s = S - 1; s >= 0; --s) last[static_cast<std::size_t>(s)] = next = last[static_cast<std::size_t>(s)] - ends[static_cast<std::size_t>(4 * s + 3)] * next;
        const double closed = ring ? close(ends.data() + 4 * S, S, z[0], last) : 0;
        for (int i = n - 1; i >= 0; --i) {
            const auto k = static_cast<std::size_t>(i), s = static_cast<std::size_t>(i / H);
            x[k] = i % H == H - 1 ? last[s] : y[k] - backwards[2 * i + 1] * (s ? last[s - 1] : closed) - backwards[2 * i] * x[k + 1];
            ASSERT_NEAR(x[k], exact[k], 1e-14) << n << " rows, segments of " << H << ", row " << i;
        }
    }
    EXPECT_GE(cut, ring ? 7 : 9);
}

TEST(Parts, SolveLines) { solve_in_parts(false); }
TEST(Parts, SolveRings) { solve_in_parts(true); }

// columns.cuh: the first segment has s before its rows.
TEST(LineTable, SolvesRings) {
    tests::Random random(7);
    for (const auto& [R, S] : {std::pair{3, 2}, {16, 6}, {25, 4}, {4, 2}, {7, 31}, {10, 10}}) {
        const auto [m, exact, right] = Line(random, R * S, false, false, true);
        Pass pass;
        pass.kind = PassKind::columns, pass.columns.columns = 1, pass.columns.segment_rows = R, pass.columns.segments = S, pass.columns.ring = true;
        std::vector<double> table;
        ASSERT_TRUE(append_factors(m, {}, pass, table));
        ASSERT_EQ(table.size(), static_cast<std::size_t>(4 * R * S + 8 * S));
        const double *const joins = table.data() + 4 * R * S, *const closing = joins + 4 * S;
        const auto factor = [&](int s, int which, int i) { return table[static_cast<std::size_t>((4 * s + which) * R + i)]; };
        std::vector<double> y = right, first(static_cast<std::size_t>(S) + 1), last(static_cast<std::size_t>(S));
        const auto row = [&](int s, int i) -> double& { return y[static_cast<std::size_t>(s * R + i)]; };
        for (int s = 0; s < S; ++s) {
            for (int i = 0; i < R; ++i) row(s, i) = row(s, i) * factor(s, 0, i) - (i ? factor(s, 1, i) * row(s, i - 1) : 0);
            double z = 0;
            for (int i = R - 2; i >= 0; --i) z = row(s, i) - factor(s, 2, i) * z;
            first[static_cast<std::size_t>(s)] = z;
        }
        double gamma = 0, next = 0;
        for (int s = 0; s < S; ++s) last[static_cast<std::size_t>(s)] = gamma = (row(s, R - 1) - joins[4 * s] * first[static_cast<std::size_t>(s) + 1]) * joins[4 * s + 2] - joins[4 * s + 1] * gamma;
        for (int s = S - 1; s >= 0; --s) last[static_cast<std::size_t>(s)] = next = last[static_cast<std::size_t>(s)] - joins[4 * s + 3] * next;
        const double closed = close(closing, S, first[0], last);
        for (int s = 0; s < S; ++s) {
            row(s, R - 1) = last[static_cast<std::size_t>(s)];
            for (int i = R - 2; i >= 0; --i) row(s, i) -= factor(s, 3, i) * (s ? last[static_cast<std::size_t>(s) - 1] : closed) + factor(s, 2, i) * row(s, i + 1);
        }
        for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], exact[i], 1e-14) << R << " x " << S << ", row " << i;
    }
    EXPECT_FALSE(LineTable<double>(Line(random, 10, false, false, true).m, 4, 3).safe) << "a rest";
    EXPECT_FALSE(LineTable<double>(Line(random, 10, false, false, true).m, 10, 1).safe) << "one segment";
}

// columns.cuh where C::alternates: what segments' first rows keep is a sum, and so are their solutions.
std::vector<double> solve(const std::vector<double>& table, int R, int S, const std::vector<double>& right) {
    const double *const joins = table.data() + 5 * R * S, *const begins = joins + 4 * S;
    std::vector<double> y = right, z(static_cast<std::size_t>(S) + 1), last(static_cast<std::size_t>(S));
    const auto factor = [&](int s, int which, int i) { return table[static_cast<std::size_t>((5 * s + which) * R + i)]; };
    for (int s = 0; s < S; ++s)
        for (int i = 0; i < R; ++i) {
            const auto k = static_cast<std::size_t>(s * R + i), own = static_cast<std::size_t>(s);
            y[k] = i ? std::fma(-factor(s, 1, i), y[k - 1], y[k] * factor(s, 0, i)) : y[k] * factor(s, 0, i);
            if (i < R - 1) z[own] = i ? std::fma(factor(s, 4, i), y[k], z[own]) : factor(s, 4, i) * y[k];
        }
    double gamma = 0, next = 0;
    for (int s = 0; s < S; ++s) {
        const auto k = static_cast<std::size_t>(s);
        last[k] = gamma = std::fma(-joins[4 * s + 1], gamma, std::fma(-joins[4 * s], z[k + 1], y[static_cast<std::size_t>((s + 1) * R - 1)]) * joins[4 * s + 2]);
    }
    for (int s = S - 1; s >= 0; --s) last[static_cast<std::size_t>(s)] = next = std::fma(-joins[4 * s + 3], next, last[static_cast<std::size_t>(s)]);
    for (int s = 0; s < S; ++s) {
        const auto own = static_cast<std::size_t>(s), first = static_cast<std::size_t>(s * R);
        const double before = s ? last[own - 1] : 0;
        y[first + static_cast<std::size_t>(R) - 1] = last[own];
        for (int i = R - 2; i > 0; --i) {
            const std::size_t k = first + static_cast<std::size_t>(i);
            y[k] = std::fma(-factor(s, 2, i), y[k + 1], std::fma(-factor(s, 3, i), before, y[k]));
        }
        y[first] = std::fma(-begins[2 * s + 1], last[own], std::fma(-begins[2 * s], before, z[own]));
    }
    return y;
}

// The matrix is its own mirror image, so that a table serves both ways.
TEST(LinesThatAlternate, AreSolvedFromEitherEnd) {
    tests::Random random(5);
    for (const auto& [R, S] : {std::pair{16, 5}, {24, 4}, {10, 8}, {12, 8}, {4, 2}, {32, 32}}) {
        const auto [m, exact, right] = Line(random, R * S, false, true);
        Pass pass;
        pass.kind = PassKind::columns, pass.columns.columns = 1, pass.columns.segment_rows = R, pass.columns.segments = S, pass.by_reach = pass.alternates = true;
        std::vector<double> table;
        ASSERT_TRUE(append_factors(m, {}, pass, table));
        ASSERT_EQ(table.size(), static_cast<std::size_t>(S * (5 * R + 6)));
        ASSERT_LE(table.size(), factor_values(pass, {}));
        const std::vector<double> found = solve(table, R, S, right), turned = solve(table, R, S, {right.rbegin(), right.rend()});
        for (std::size_t i = 0; i < exact.size(); ++i) {
            ASSERT_NEAR(found[i], exact[i], 1e-14) << S << " segments of " << R << ", row " << i;
            ASSERT_NEAR(turned[exact.size() - 1 - i], exact[i], 1e-14) << S << " segments of " << R << ", row " << i << ", from the last row on";
        }
    }
}

// What decides roundings must not change with the batch.
TEST(Parts, AreCutByTheShapeOfAMesh) {
    const Chip chip;
    const Reach reach{1, 1, 1, 1};
    int cut = 0;
    for (const std::size_t bytes : {4, 8})
        for (const int n : {24, 33, 64, 80, 96, 100, 128, 192, 256, 384, 512}) {
            const int H = cut_segment(chip, bytes, n, n, n);
            if (H == 0) continue;
            const RowsCut rows = cut_rows(chip, bytes, n, n, n, 1, reach, {}, H);
            const ColumnsCut columns = cut_columns(chip, bytes, n, 1, {.nx = n});
            if (!rows.fits() || !columns.fits()) continue;
            ++cut;
            for (const std::int64_t meshes : {1, 4, 100}) {
                for (const int ahead : {0, H}) {
                    const RowsCut many = cut_rows(chip, bytes, n, n, n, meshes, reach, {}, ahead, &rows);
                    EXPECT_EQ(many.lanes, rows.lanes) << n;
                    EXPECT_EQ(many.segment_rows, rows.segment_rows) << n;
                    EXPECT_LE(many.shared, chip.shared_per_block) << n;
                    EXPECT_TRUE(ahead == 0 || many.chunk % H == 0) << n;
                }
                for (const ColumnsAsked& asked : {ColumnsAsked{.nx = n, .tasks_per_piece = n / H * meshes}, ColumnsAsked{}}) {
                    ColumnsAsked kept = asked;
                    kept.segment_rows = columns.segment_rows, kept.segments = columns.segments;
                    const ColumnsCut many = cut_columns(chip, bytes, n, 1, kept);
                    ASSERT_TRUE(many.fits()) << n;
                    EXPECT_EQ(many.segments * many.segment_rows >= n, true) << n;
                    EXPECT_EQ(many.threads % 32, 0) << n;
                    EXPECT_LE(many.shared, chip.shared_per_block) << n;
                }
                EXPECT_TRUE(cut_columns(chip, bytes, n, 0, {.segment_rows = H, .segments = n / H, .by_reach = true}).fits()) << n;
            }
        }
    EXPECT_GE(cut, 16);
}

// What was timed fits on the chip that it was timed on.
TEST(TimedCuts, FitAndHaveTheSegmentsOfTheShape) {
    const Chip chip;
    int found = 0;
    for (const std::size_t bytes : {4, 8})
        for (const auto& [nx, along, across] : {std::tuple{64, 64, 64}, {80, 64, 64}, {80, 80, 80}, {96, 96, 96}, {128, 128, 128}, {192, 192, 192}, {256, 256, 256}}) {
            const TimedCut* const alone = timed_cut(bytes, nx, along, across, 1);
            if (!alone) continue;
            ++found;
            for (const std::int64_t meshes : {1, 24, 48, 72, 1000}) {
                const TimedCut* const timed = timed_cut(bytes, nx, along, across, meshes);
                EXPECT_EQ(std::tuple(timed->segment, timed->lanes, timed->segment_rows, timed->columns_rows, timed->columns_segments),
                          std::tuple(alone->segment, alone->lanes, alone->segment_rows, alone->columns_rows, alone->columns_segments))
                    << nx;
                const RowsCut rows = rows_of(*timed, chip, {1, 1, 1, 1}, {.alike = true});
                const ColumnsCut columns = columns_of(*timed, chip, true, false);
                ASSERT_TRUE(rows.fits() && columns.fits()) << nx;
                EXPECT_EQ(along % timed->segment, 0) << nx;
                EXPECT_EQ(timed->segment % (16 / static_cast<int>(bytes)), 0) << nx << ": a mesh alone has segments of lines in vectors";
                EXPECT_EQ(rows.chunk % timed->segment, 0) << nx;
                EXPECT_GE(rows.lanes * rows.segment_rows, nx);
                EXPECT_GE(columns.segments * columns.segment_rows, across) << nx;
                EXPECT_EQ(columns.threads % 32, 0) << nx;
                for (const auto& [threads, shared, blocks] : {std::tuple{rows.threads, rows.shared, rows.blocks}, {columns.threads, columns.shared, columns.blocks}}) {
                    EXPECT_LE(blocks * threads, 2048) << nx;
                    EXPECT_LE(static_cast<std::size_t>(blocks) * (shared + 1024), chip.shared_per_multiprocessor) << nx;
                }
            }
        }
    EXPECT_GE(found, 12);
}

TEST(LaneTable, RefusesWhatNeedsPivots) {
    LineMatrix<float> m;
    m.lower.assign(64, -1), m.upper.assign(64, 1), m.diag.assign(64, 1e-6F);
    m.lower[0] = m.upper[63] = 0;
    EXPECT_FALSE(LaneTable<float>(m, 9, 8).safe);
}

// Recurrences whose products add up to much: the scan would multiply by a large inverse.
TEST(LaneTable, RefusesJoinsThatDoNotDecay) {
    LineMatrix<double> m;
    m.lower.assign(2048, -1), m.upper.assign(2048, 0), m.diag.assign(2048, 1);
    m.lower[0] = 0;
    EXPECT_TRUE(LineTable<double>(m, 32, 64).safe);
    EXPECT_FALSE(LaneTable<double>(m, 32, 64).safe);
}

}  // namespace
}  // namespace trifold::cuda::streaming
