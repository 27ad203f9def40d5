// SPDX-License-Identifier: BSD-3-Clause
// The coupling of chunks: interface rows of every number of chunks around the runs, and singular ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "families/tridiagonal/coupling.hpp"
#include "support/random.hpp"
#include "unit/two_pass.hpp"

namespace trifold::tests {
namespace {

using tridiagonal::InterfaceRow;

std::vector<InterfaceRow> random_rows(std::int64_t chunks, std::uint64_t seed) {
    Random random(seed);
    std::vector<InterfaceRow> rows(2 * chunks);
    for (std::size_t k = 0; k < rows.size(); ++k) {
        for (int c = 0; c < 4; ++c) rows[k].coefficient[c] = k % 2 && c != 2 && random.chance(0.2) ? 0 : random.uniform(-1, 1);
        rows[k].rhs = random.uniform(-1, 1);
    }
    // x before the first and after the last chunk do not exist, whatever stands there.
    for (int k = 0; k < 2; ++k) rows[k].coefficient[0] = rows[2 * chunks - 1 - k].coefficient[3] = std::nan("");
    return rows;
}

std::int64_t solve(std::vector<InterfaceRow> rows, std::vector<double>& boundary, int threads = 1, double accept = 1e-15) {
    const std::int64_t chunks = static_cast<std::int64_t>(rows.size()) / 2;
    const Scratch64 scratch(tridiagonal::coupling_scratch(chunks));
    boundary.assign(2 * chunks, 77);
    return tridiagonal::couple(chunks, rows.data(), boundary.data(), accept, threads, scratch.data);
}

/// What is left of the worst row, against the sum of its terms; NaN where something is no number.
double worst(const std::vector<InterfaceRow>& rows, const std::vector<double>& x) {
    const std::int64_t chunks = static_cast<std::int64_t>(rows.size()) / 2;
    double most = 0;
    for (std::int64_t k = 0; k < chunks; ++k)
        for (int r = 0; r < 2; ++r) {
            const InterfaceRow& row = rows[static_cast<std::size_t>(2 * k + r)];
            const double at[4] = {k > 0 ? x[2 * k - 1] : 0, x[2 * k], x[2 * k + 1], k + 1 < chunks ? x[2 * k + 2] : 0};
            double left = row.rhs, weight = std::abs(row.rhs);
            for (int c = 0; c < 4; ++c)
                if (at[c] != 0) left -= row.coefficient[c] * at[c], weight += std::abs(row.coefficient[c] * at[c]);
            if (!std::isfinite(left) || !std::isfinite(weight)) return NAN;
            if (weight > 0) most = std::max(most, std::abs(left) / weight);
        }
    return most;
}

const std::int64_t counts[] = {1, 2, 3, 63, 64, 65, 127, 128, 129, 255, 256, 257, 320, 511, 513, 4095, 4096, 4097, 4200, 20000};

TEST(Coupling, SolvesTheInterfaceRows) {
    for (const std::int64_t chunks : counts) {
        const std::vector<InterfaceRow> rows = random_rows(chunks, 3 + static_cast<std::uint64_t>(chunks));
        std::vector<double> x;
        ASSERT_EQ(solve(rows, x), -1);
        double largest = 0;
        for (const double value : x) largest = std::max(largest, std::abs(value));
        for (std::int64_t k = 0; k < chunks; ++k)
            for (int r = 0; r < 2; ++r) {
                const InterfaceRow& row = rows[2 * k + r];
                const double* const c = row.coefficient;
                double residual = row.rhs - c[1] * x[2 * k] - c[2] * x[2 * k + 1];
                if (k > 0) residual -= c[0] * x[2 * k - 1];
                if (k + 1 < chunks) residual -= c[3] * x[2 * k + 2];
                ASSERT_LE(std::abs(residual), 1e-14 * (largest + 1)) << chunks << " chunks, row " << r << " of chunk " << k;
            }
    }
}

TEST(Coupling, DoesNotDependOnThreads) {
    for (const std::int64_t chunks : counts) {
        const std::vector<InterfaceRow> rows = random_rows(chunks, 5);
        std::vector<double> one, more;
        solve(rows, one);
        for (const int threads : {2, 3, 7}) {
            solve(rows, more, threads);
            EXPECT_EQ(one, more) << chunks << " chunks, " << threads << " threads";
        }
    }
}

TEST(Coupling, NamesAnUnknownThatNoRowHas) {
    for (const std::int64_t chunks : {1, 2, 64, 65, 300, 4097})
        for (const std::int64_t unknown : {std::int64_t{0}, std::int64_t{1}, chunks - 1, chunks, 2 * chunks - 2, 2 * chunks - 1}) {
            std::vector<InterfaceRow> rows = random_rows(chunks, 7);
            const std::int64_t k = unknown / 2;
            for (int r = 0; r < 2; ++r) {
                rows[2 * k + r].coefficient[1 + unknown % 2] = 0;
                if (unknown % 2 == 0 && k > 0) rows[2 * k - 2 + r].coefficient[3] = 0;
                if (unknown % 2 == 1 && k + 1 < chunks) rows[2 * k + 2 + r].coefficient[0] = 0;
            }
            std::vector<double> x;
            EXPECT_EQ(solve(rows, x), unknown) << chunks << " chunks";
        }
}

/// Chunks of a chain of springs, every second row scaled: pivots are chosen by size, and rows that are small beside their neighbours would be left off by that much.
TEST(Coupling, EveryRowHoldsWhateverItsScale) {
    for (const double scale : {1.0, 1.0 / 64, 64.0})
        for (const std::int64_t chunks : counts) {
            Random random(9);
            std::vector<InterfaceRow> rows(static_cast<std::size_t>(2 * chunks));
            double above = random.uniform(1, 20);
            for (std::int64_t k = 0; k < chunks; ++k) {
                const double below = random.uniform(1, 20), through = random.uniform(0.01, 0.1), first = through / (above + through), last = scale * above / (1 - first);
                rows[2 * k] = {{-last * (1 - first), last, -last * first, 0}, last * random.uniform(-1, 1)};
                rows[2 * k + 1] = {{-through, 0, through + below, -below}, random.uniform(-1, 1)};
                above = below;
            }
            std::vector<double> x;
            ASSERT_EQ(solve(rows, x, 2), -1);
            EXPECT_LE(worst(rows, x), 8 * 0x1p-53) << chunks << " chunks, scale " << scale;
        }
}

struct Kind {
    const char* name;
    std::vector<InterfaceRow> (*rows)(std::int64_t chunks);
};

// Poisson's equation in chunks of 496 rows, as the cpu leaves it.
std::vector<InterfaceRow> poisson(std::int64_t chunks) {
    Random random(11);
    std::vector<InterfaceRow> rows;
    const double inside = 1.0 / 496, last = 494.0 / 495;
    for (std::int64_t k = 0; k < chunks; ++k) {
        rows.push_back({{-inside, 0, 1 + inside, -1}, random.uniform(-1, 1)});
        rows.push_back({{-last, 1, -(1 - last), 0}, random.uniform(-1, 1)});
    }
    return rows;
}

// Layers whose conductances lie ten thousand apart.
std::vector<InterfaceRow> layers(std::int64_t chunks) {
    Random random(12);
    std::vector<InterfaceRow> rows;
    double above = 1;
    for (std::int64_t k = 0; k < chunks; ++k) {
        const double below = k / 8 % 2 ? 1e4 : 1, through = below / 500;
        rows.push_back({{-above, above + through, -through, 0}, random.uniform(-1, 1)});
        rows.push_back({{0, -through, through + below, -below}, random.uniform(-1, 1)});
        above = below;
    }
    return rows;
}

// Nothing fades and nothing dominates.
std::vector<InterfaceRow> waves(std::int64_t chunks) {
    Random random(13);
    std::vector<InterfaceRow> rows;
    for (std::int64_t k = 0; k < chunks; ++k) {
        rows.push_back({{0.97148, 0, -1, -0.329204}, random.uniform(-1, 1)});
        rows.push_back({{0.248107, 1, 0.0834778, -0.943999}, random.uniform(-1, 1)});
    }
    return rows;
}

// A ring's chain without its ends fixed, but for next to nothing.
std::vector<InterfaceRow> nearly_singular(std::int64_t chunks) {
    std::vector<InterfaceRow> rows = layers(chunks);
    rows.front().coefficient[1] = rows.front().coefficient[1] - 1 + 1e-10;
    rows.back().coefficient[2] = 1.0 / 500;
    return rows;
}

// A spike of a device's part: the unknown itself, and what it is of its neighbours.
std::vector<InterfaceRow> spikes(std::int64_t chunks) {
    Random random(14);
    std::vector<InterfaceRow> rows;
    for (std::int64_t k = 0; k < chunks; ++k) {
        const double near = 1 - 1.0 / 16384, far = 1.0 / 16384;
        rows.push_back({{-near, 1, 0, -far}, random.uniform(-1, 1)});
        rows.push_back({{-far, 0, 1, -near}, random.uniform(-1, 1)});
    }
    return rows;
}

const Kind kinds[] = {{"random", [](std::int64_t chunks) { return random_rows(chunks, 17); }}, {"poisson", poisson}, {"layers", layers}, {"waves", waves}, {"nearly singular", nearly_singular}, {"spikes", spikes}};

std::int64_t solve_parts(std::vector<InterfaceRow> rows, const std::vector<std::int64_t>& chunks, std::vector<double>& boundary, int threads, double accept = 0x1p-52) {
    std::vector<tridiagonal::ChunkRows> parts;
    std::int64_t all = 0;
    for (const std::int64_t some : chunks) parts.push_back({rows.data() + 2 * all, some}), all += some;
    const Scratch64 scratch(tridiagonal::coupling_scratch(all, static_cast<std::int64_t>(parts.size())));
    boundary.assign(static_cast<std::size_t>(2 * all), 77);
    return tridiagonal::couple(parts, boundary.data(), accept, threads, scratch.data);
}

const std::vector<std::int64_t> cuts[] = {{1}, {1, 1}, {2, 1, 1}, {64, 64}, {128, 256, 64}, {130, 4097, 130, 130, 999}, {1, 700, 1, 1, 63, 65, 2}, {3000, 1, 3000}, {130, 130, 130, 130, 130, 130, 130, 130}};

TEST(Coupling, PartsAreAsOne) {
    for (const Kind& kind : kinds)
        for (const std::vector<std::int64_t>& cut : cuts) {
            std::int64_t chunks = 0;
            bool whole_runs = true;
            for (const std::int64_t some : cut) whole_runs = whole_runs && chunks % 64 == 0, chunks += some;
            std::vector<InterfaceRow> rows = kind.rows(chunks);
            for (int r = 0; r < 2; ++r) rows[static_cast<std::size_t>(r)].coefficient[0] = rows[rows.size() - 1 - static_cast<std::size_t>(r)].coefficient[3] = 0;
            std::vector<double> one, parts, more;
            ASSERT_EQ(solve(rows, one, 1, 0x1p-52), -1) << kind.name;
            ASSERT_EQ(solve_parts(rows, cut, parts, 1), -1) << kind.name;
            ASSERT_EQ(solve_parts(rows, cut, more, 3), -1) << kind.name;
            EXPECT_EQ(parts, more) << kind.name << ": depends on threads";
            if (whole_runs) {
                EXPECT_EQ(one, parts) << kind.name << ": the same runs, " << chunks << " chunks";
            }
            // Nothing is promised of rows whose refinement ends above: the whole has as much then.
            EXPECT_LE(worst(rows, parts), std::max(8 * 0x1p-53, 4 * worst(rows, one))) << kind.name << ", " << chunks << " chunks";
        }
}

TEST(Coupling, PartsWithoutAPivotOrANumber) {
    for (const std::vector<std::int64_t>& cut : cuts) {
        std::int64_t chunks = 0;
        for (const std::int64_t some : cut) chunks += some;
        std::int64_t first = 0;
        for (const std::int64_t some : cut) {
            std::vector<InterfaceRow> rows = random_rows(chunks, 19), numbers = rows;
            for (int r = 0; r < 2; ++r) {
                rows[static_cast<std::size_t>(2 * first + r)].coefficient[1] = 0;
                if (first > 0) rows[static_cast<std::size_t>(2 * first - 2 + r)].coefficient[3] = 0;
            }
            std::vector<double> x;
            EXPECT_EQ(solve_parts(rows, cut, x, 2), 2 * first);
            numbers[static_cast<std::size_t>(2 * first)].rhs = std::nan("");
            if (solve_parts(numbers, cut, x, 2) < 0) {
                EXPECT_TRUE(std::any_of(x.begin(), x.end(), [](double value) { return std::isnan(value); })) << "a number that is none is gone";
            }
            first += some;
        }
    }
}

}  // namespace
}  // namespace trifold::tests
