// SPDX-License-Identifier: BSD-3-Clause
// Runs of chunks in the lanes of vectors: of one length and of several, on every vector target.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

#include "families/tridiagonal/coupling.hpp"
#include "families/tridiagonal/coupling_runs.hpp"
#include "support/random.hpp"
#include "unit/two_pass.hpp"

namespace trifold::tests {
namespace {

using namespace tridiagonal;

std::vector<double> random_numbers(std::size_t count, std::uint64_t seed) {
    Random random(seed);
    std::vector<double> out(count);
    for (double& value : out) value = random.uniform(-1, 1);
    return out;
}

std::vector<InterfaceRow> rows_of_chunks(std::int64_t chunks, std::uint64_t seed) {
    const std::vector<double> numbers = random_numbers(static_cast<std::size_t>(10 * chunks), seed);
    std::vector<InterfaceRow> rows;
    for (std::size_t k = 0; k < numbers.size(); k += 5) rows.push_back({{numbers[k], numbers[k + 1], numbers[k + 2], numbers[k + 3]}, numbers[k + 4]});
    return rows;
}

/// Runs of these lengths, one after the other, as many at a time as go together.
struct Some {
    std::vector<InterfaceRow> rows;
    std::vector<ChunkRun> runs;
    std::int64_t chunks = 0;

    explicit Some(const std::vector<std::int64_t>& lengths) {
        for (const std::int64_t length : lengths) chunks += length;
        rows = rows_of_chunks(chunks, 31);
        std::int64_t at = 0;
        for (const std::int64_t length : lengths) runs.push_back({rows.data() + 2 * at, at, length}), at += length;
    }

    template <class Work>
    void each(const Work& work) const {
        const auto count = static_cast<std::int64_t>(runs.size());
        for (std::int64_t k = 0; k < count; k += runs_together()) work(ChunkRuns{runs.data() + k, std::min(runs_together(), count - k)}, k);
    }
};

const std::vector<std::int64_t> lengths[] = {{64, 64, 64, 64, 64, 64, 64, 64}, {1}, {1, 64, 2, 64, 63, 1, 5, 64, 64}, {64, 64, 64}, {7, 7, 7, 7, 7, 7, 7, 7, 7, 7}, {64, 1, 1, 1, 1, 1, 1, 1}};

/// What is left of a row, and the sum of its |coefficient x|.
void left_of(const Some& some, const std::vector<double>& ends, const std::vector<double>& x, std::size_t run, std::int64_t chunk, int r, double& left, double& weight) {
    const ChunkRun& of = some.runs[run];
    const double* const here = x.data() + 2 * (of.first + chunk);
    const double at[4] = {chunk > 0 ? here[-1] : ends[2 * run], here[0], here[1], chunk + 1 < of.chunks ? here[2] : ends[2 * run + 3]};
    const InterfaceRow& row = of.rows[2 * chunk + r];
    left = row.rhs, weight = 0;
    for (int c = 0; c < 4; ++c) left -= row.coefficient[c] * at[c], weight += std::abs(row.coefficient[c] * at[c]);
}

TEST(ChunkRuns, FoundBetweenTheirEnds) {
    on_every_target([] {
        for (const std::vector<std::int64_t>& each : lengths) {
            Some some(each);
            const auto numbers = static_cast<std::size_t>(2 * some.chunks);
            const std::vector<double> expected = random_numbers(numbers, 32);
            std::vector<double> ends(2 * some.runs.size() + 2, 0.0);
            for (std::size_t run = 0; run < some.runs.size(); ++run)
                for (int end = 0; end < 2; ++end) ends[2 * run + 1 + end] = expected[static_cast<std::size_t>(2 * some.runs[run].first + end * (2 * some.runs[run].chunks - 1))];
            for (std::size_t run = 0; run < some.runs.size(); ++run)
                for (std::int64_t k = 0; k < 2 * some.runs[run].chunks; ++k) {
                    double left = 0, weight = 0;
                    left_of(some, ends, expected, run, k / 2, static_cast<int>(k % 2), left, weight);
                    some.runs[run].rows[k].rhs -= left;
                }
            std::vector<double> x(numbers, NAN), only(numbers, NAN), left(numbers, NAN);
            std::vector<InterfaceRow> again(2 * some.runs.size());
            RowsLeft seen;
            some.each([&](ChunkRuns runs, std::int64_t first) {
                const RowsLeft of = finish_runs(runs, Also::take, {.ends = ends.data() + 1 + 2 * first, .x = x.data(), .left = left.data(), .again = again.data() + 2 * first});
                seen.most = std::max(seen.most, of.most), seen.numbers = seen.numbers && of.numbers;
                finish_runs(runs, Also::nothing, {.ends = ends.data() + 1 + 2 * first, .x = only.data()});
            });
            EXPECT_EQ(x, only);
            EXPECT_TRUE(seen.numbers);
            EXPECT_LE(seen.most, 1e-9);
            for (std::size_t k = 0; k < numbers; ++k) {
                ASSERT_NEAR(x[k], expected[k], 1e-9) << k;
                ASSERT_LE(std::abs(left[k]), 1e-9) << k;
            }
        }
    });
}

TEST(ChunkRuns, WhatIsLeftOfRowsWhoseEndsAreWrong) {
    on_every_target([] {
        for (const std::vector<std::int64_t>& each : lengths) {
            const Some some(each);
            const auto numbers = static_cast<std::size_t>(2 * some.chunks);
            const std::vector<double> ends = random_numbers(2 * some.runs.size() + 2, 32);
            std::vector<double> x(numbers, NAN), left(numbers, NAN);
            std::vector<InterfaceRow> again(2 * some.runs.size());
            RowsLeft seen;
            some.each([&](ChunkRuns runs, std::int64_t first) {
                const RowsLeft of = finish_runs(runs, Also::take, {.ends = ends.data() + 1 + 2 * first, .x = x.data(), .left = left.data(), .again = again.data() + 2 * first});
                seen.most = std::max(seen.most, of.most), seen.numbers = seen.numbers && of.numbers;
            });
            double most = 0;
            for (std::size_t run = 0; run < some.runs.size(); ++run)
                for (std::int64_t k = 0; k < 2 * some.runs[run].chunks; ++k) {
                    double expected = 0, weight = 0;
                    left_of(some, ends, x, run, k / 2, static_cast<int>(k % 2), expected, weight);
                    ASSERT_NEAR(left[static_cast<std::size_t>(2 * some.runs[run].first + k)], expected, 1e-15 * (weight + 1));
                    most = std::max(most, std::abs(expected) / weight);
                }
            EXPECT_NEAR(seen.most, most, 1e-12 * most);
            EXPECT_GT(most, 1e-3);

            // A number that is none in the last run's last row, and in no other.
            Some broken(each);
            broken.rows.back().rhs = NAN;
            bool numbers_all = true;
            broken.each([&](ChunkRuns runs, std::int64_t first) { numbers_all = numbers_all && finish_runs(runs, Also::take, {.ends = ends.data() + 1 + 2 * first, .x = x.data()}).numbers; });
            EXPECT_FALSE(numbers_all);
        }
    });
}

TEST(ChunkRuns, WhatIsLeftIsReducedAsItWouldBe) {
    on_every_target([] {
        for (const std::vector<std::int64_t>& each : lengths) {
            const Some some(each);
            Some other(each);
            const auto numbers = static_cast<std::size_t>(2 * some.chunks);
            const std::vector<double> ends = random_numbers(2 * some.runs.size() + 2, 33);
            std::vector<double> x(numbers, NAN), left(numbers, NAN);
            std::vector<InterfaceRow> again(2 * some.runs.size(), InterfaceRow{{9, 9, 9, 9}, 9}), anew = again;
            some.each([&](ChunkRuns runs, std::int64_t first) { finish_runs(runs, Also::take, {.ends = ends.data() + 1 + 2 * first, .x = x.data(), .left = left.data(), .again = again.data() + 2 * first}); });
            for (std::size_t k = 0; k < other.rows.size(); ++k) other.rows[k].rhs = left[k];
            other.each([&](ChunkRuns runs, std::int64_t first) { EXPECT_EQ(reduce_runs(runs, anew.data() + 2 * first), -1); });
            for (std::size_t k = 0; k < again.size(); ++k) {
                EXPECT_EQ(again[k].rhs, anew[k].rhs);
                EXPECT_EQ(again[k].coefficient[0], 9) << "only right-hand sides are written";
                EXPECT_NE(anew[k].coefficient[0], 9);
            }
        }
    });
}

TEST(ChunkRuns, Corrected) {
    on_every_target([] {
        for (const std::vector<std::int64_t>& each : lengths) {
            const Some some(each);
            Some other(each);
            const auto numbers = static_cast<std::size_t>(2 * some.chunks);
            const std::vector<double> ends = random_numbers(2 * some.runs.size() + 2, 33), right = random_numbers(numbers, 34), before = random_numbers(numbers, 35);
            std::vector<double> ends_of_x(2 * some.runs.size() + 2, 0.0), dx(numbers, NAN), x = before;
            for (std::size_t run = 0; run < some.runs.size(); ++run)
                for (int end = 0; end < 2; ++end) ends_of_x[2 * run + 1 + end] = before[static_cast<std::size_t>(2 * some.runs[run].first + end * (2 * some.runs[run].chunks - 1))];
            for (std::size_t k = 0; k < other.rows.size(); ++k) other.rows[k].rhs = right[k];
            RowsLeft seen;
            some.each([&](ChunkRuns runs, std::int64_t first) {
                const RowsLeft of = finish_runs(runs, Also::correct, {.ends = ends.data() + 1 + 2 * first, .x = x.data(), .right = right.data(), .ends_of_x = ends_of_x.data() + 1 + 2 * first});
                seen.most = std::max(seen.most, of.most), seen.numbers = seen.numbers && of.numbers;
            });
            other.each([&](ChunkRuns runs, std::int64_t first) { finish_runs(runs, Also::nothing, {.ends = ends.data() + 1 + 2 * first, .x = dx.data()}); });
            for (std::size_t k = 0; k < numbers; ++k) ASSERT_EQ(x[k], before[k] + dx[k]) << k;
            // What is left of the correction's rows, against x as it was.
            double most = 0;
            for (std::size_t run = 0; run < some.runs.size(); ++run)
                for (std::int64_t k = 0; k < 2 * some.runs[run].chunks; ++k) {
                    double left = 0, weight = 0, unused = 0;
                    left_of(other, ends, dx, run, k / 2, static_cast<int>(k % 2), left, unused), left_of(other, ends_of_x, before, run, k / 2, static_cast<int>(k % 2), unused, weight);
                    most = std::max(most, std::abs(left) / weight);
                }
            EXPECT_TRUE(seen.numbers);
            EXPECT_NEAR(seen.most, most, 1e-12 * most);
        }
    });
}

TEST(ChunkRuns, EveryTargetHasTheSameBits) {
    for (const std::int64_t chunks : {1, 2, 65, 300, 513, 1100, 4200})
        for (const double accept : {0x1p-52, 1.0}) {
            std::vector<double> first;
            on_every_target([&] {
                std::vector<InterfaceRow> rows = rows_of_chunks(chunks, 36);
                const std::int64_t cut = chunks / 3;
                std::vector<ChunkRows> parts = {{rows.data(), cut}, {rows.data() + 2 * cut, chunks - cut}};
                if (cut == 0) parts.erase(parts.begin());
                const Scratch64 scratch(coupling_scratch(chunks, 2));
                std::vector<double> x(static_cast<std::size_t>(2 * chunks), 77.0);
                ASSERT_EQ(couple(parts, x.data(), accept, 2, scratch.data), -1);
                if (first.empty()) first = x;
                EXPECT_EQ(x, first) << chunks << " chunks";
            });
        }
}

TEST(ChunkRuns, WhoDidWhat) {
    constexpr std::int64_t chunks = 40'000;
    std::vector<InterfaceRow> rows = rows_of_chunks(chunks, 37);
    const Scratch64 scratch(coupling_scratch(chunks));
    std::vector<double> x(2 * chunks);
    std::vector<CouplingSpan> spans;
    const ChunkRows all{rows.data(), chunks};
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_EQ(couple({&all, 1}, x.data(), 0, 3, scratch.data, &spans), -1);
    const auto end = std::chrono::steady_clock::now();
    std::vector<std::string> phases;
    for (const CouplingSpan& span : spans) {
        EXPECT_LE(begin, span.begin);
        EXPECT_LE(span.begin, span.end);
        EXPECT_LE(span.end, end);
        EXPECT_GE(span.thread, 0);
        EXPECT_LT(span.thread, 3);
        if (phases.empty() || phases.back() != span.what) phases.push_back(span.what);
    }
    // Sets that were finished before the first row that has too much are reduced again by themselves.
    EXPECT_EQ(phases, (std::vector<std::string>{"reduce", "runs", "finish", "reduce again", "runs", "correct"}));
}

TEST(ChunkRuns, TheFirstUnknownWithoutAPivotOnEveryTarget) {
    on_every_target([] {
        Some some({64, 64, 20, 64, 64, 64, 64, 64, 64});
        for (const std::int64_t unknown : {std::int64_t{1}, std::int64_t{2}, std::int64_t{127 + 126}, std::int64_t{2 * 140}, 2 * some.chunks - 2}) {
            const std::int64_t k = unknown / 2;
            std::vector<InterfaceRow> good = some.rows;
            for (int r = 0; r < 2; ++r) {
                some.rows[static_cast<std::size_t>(2 * k + r)].coefficient[1 + unknown % 2] = 0;
                if (unknown % 2 == 0 && k > 0) some.rows[static_cast<std::size_t>(2 * k - 2 + r)].coefficient[3] = 0;
                if (unknown % 2 == 1 && k + 1 < some.chunks) some.rows[static_cast<std::size_t>(2 * k + 2 + r)].coefficient[0] = 0;
            }
            std::vector<InterfaceRow> out(2 * some.runs.size());
            std::int64_t missing = -1;
            some.each([&](ChunkRuns runs, std::int64_t first) {
                const std::int64_t at = reduce_runs(runs, out.data() + 2 * first);
                if (missing < 0) missing = at;
            });
            EXPECT_EQ(missing, unknown);
            std::copy(good.begin(), good.end(), some.rows.begin());
        }
    });
}

}  // namespace
}  // namespace trifold::tests
