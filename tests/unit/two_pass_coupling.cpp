// SPDX-License-Identifier: BSD-3-Clause
// The coupling of chunks: interface rows of every number of chunks around the runs, and singular ones.
#include <gtest/gtest.h>

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
            double most = 0;
            for (std::int64_t k = 0; k < chunks; ++k)
                for (int r = 0; r < 2; ++r) {
                    const InterfaceRow& row = rows[static_cast<std::size_t>(2 * k + r)];
                    const double at[4] = {k > 0 ? x[2 * k - 1] : 0, x[2 * k], x[2 * k + 1], k + 1 < chunks ? x[2 * k + 2] : 0};
                    double left = row.rhs, weight = std::abs(row.rhs);
                    for (int c = 0; c < 4; ++c) left -= row.coefficient[c] * at[c], weight += std::abs(row.coefficient[c] * at[c]);
                    most = std::max(most, std::abs(left) / weight);
                }
            EXPECT_LE(most, 8 * 0x1p-53) << chunks << " chunks, scale " << scale;
        }
}

}  // namespace
}  // namespace trifold::tests
