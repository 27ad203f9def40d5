// SPDX-License-Identifier: BSD-3-Clause
// Sizes: single systems and batches up to larger than every block, chunk and tile; agreement with the oracle.
#include <tuple>
#include <vector>

#include "contract/tridiagonal/devices.hpp"
#include "contract/tridiagonal/trial.hpp"
#include "support/measure.hpp"

namespace trifold::tests {
namespace {

class Size : public OnDevice {
protected:
    template <class T>
    void attempt(std::int64_t rows, const std::vector<std::int64_t>& batch, bool dominant) {
        for (const bool in_place : {false, true}) {
            Recipe recipe;
            recipe.rows = rows;
            recipe.batch = batch;
            recipe.in_place = in_place;
            recipe.dominant = dominant;
            recipe.seed = static_cast<std::uint64_t>(rows);
            SCOPED_TRACE(recipe.text());
            Trial<T> trial(recipe);
            trial.expect_solved(tridiagonal::solve(queue, trial.problem()));
            if (!dominant || GetParam() == "reference") continue;
            Queue oracle(context(), "reference");
            Trial<T> expected(recipe);
            tridiagonal::solve(oracle, expected.problem());
            for (std::int64_t k = 0; k < trial.systems(); ++k) {
                const std::vector<double> x = trial.solution(k), y = expected.solution(k);
                double difference = 0;
                for (std::size_t i = 0; i < x.size(); ++i) difference = std::max(difference, std::abs(x[i] - y[i]));
                ASSERT_LE(difference, 60 * unit_roundoff(dtype_of<T>) * largest(y));
            }
        }
    }
};

TEST_P(Size, Single) {
    for (const std::int64_t rows : {1, 2, 3, 4, 5, 7, 8, 9, 13, 31, 61, 127, 128, 129, 251, 255, 256, 257, 511, 513, 1021, 2047, 2048, 2049, 4093, 4095,
                                    4097, 8191, 16384, 16411, 32769, 65521, 100003, 262144})
        for (const bool dominant : {true, false}) {
            attempt<double>(rows, {}, dominant);
            attempt<float>(rows, {}, dominant);
        }
}

/// Couplings of 1, the same diagonal in every row.
struct Forgetting final : Entries {
    double diag;
    explicit Forgetting(double d) : diag(d) {}
    double coefficient(int band, std::int64_t row, std::int64_t) const override { return band == 1 ? diag : diag > 1e30 ? 0 : row % 3 == band ? 1 : -1; }
    double right(std::int64_t row, std::int64_t) const override { return diag * (static_cast<double>(row * 37 % 1009) / 1009 - 0.4); }
};

// Halos of every length that a device may choose by it: within a row, some rows, some hundred rows.
TEST_P(Size, HoweverFastItForgets) {
    for (const std::int64_t rows : {150001, 262144})
        for (const double diag : {1e31, 1e9, 1e5, 3e4, 1e4, 3000., 1000., 300., 100., 50., 25., 12., 8., 6., 5., 4., 3., 2.5, 2.2, 2.1}) {
            Recipe recipe;
            recipe.rows = rows, recipe.entries = std::make_shared<Forgetting>(diag);
            SCOPED_TRACE(testing::Message() << diag << " on the diagonal, " << recipe.text());
            const Trial<float> single(recipe);
            single.expect_solved(tridiagonal::solve(queue, single.problem()));
            const Trial<double> twice(recipe);
            twice.expect_solved(tridiagonal::solve(queue, twice.problem()));
            if (HasFailure()) return;
        }
}

// Rows apart in memory, between numbers that would make a system too: alone, and few systems beside each other.
TEST_P(Size, RowsApart) {
    for (const std::int64_t rows : {5, 127, 1023, 1024, 1025, 1026, 2047, 4097, 8191, 8192, 8193, 16411, 70001})
        for (const bool dominant : {true, false})
            for (const bool in_place : {false, true}) {
                Recipe recipe;
                recipe.rows = rows, recipe.dominant = dominant, recipe.in_place = in_place, recipe.around = Around::numbers;
                for (const auto& [layout, batch, seed] : {std::tuple{Layout::scattered, std::vector<std::int64_t>{}, 1}, {Layout::scattered, {}, 2}, {Layout::reversed, {}, 1}, {Layout::interleaved, {2}, 1}, {Layout::scattered, {3}, 4}}) {
                    recipe.layout = layout, recipe.batch = batch, recipe.seed = static_cast<std::uint64_t>(rows + seed);
                    SCOPED_TRACE(recipe.text());
                    Trial<double> trial(recipe);
                    trial.expect_solved(tridiagonal::solve(queue, trial.problem()));
                    Trial<float> single(recipe);
                    single.expect_solved(tridiagonal::solve(queue, single.problem()));
                }
            }
}

TEST_P(Size, Batch) {
    for (const std::int64_t rows : {1, 2, 3, 31, 64, 65, 1000, 2003})
        for (const std::int64_t systems : {1, 2, 3, 7, 8, 9, 17, 33, 65})
            for (const bool dominant : {true, false}) {
                attempt<double>(rows, {systems}, dominant);
                attempt<float>(rows, {systems}, dominant);
            }
}

// Lengths where GPUs go from one kernel, or one way to cut a system, to the next.
TEST_P(Size, AroundParts) {
    for (const std::int64_t rows : {266, 267, 353, 416, 417, 543, 544, 545, 671, 672, 673, 799, 800, 801, 1055, 1056, 1057, 1088, 1089, 1344, 1345, 1376, 1377, 1568, 1569, 2112, 2113, 2177,
                                    4352, 4353, 6529, 8193, 11969, 17409})
        for (const std::int64_t systems : {1, 2, 5}) {
            attempt<double>(rows, {systems}, true);
            attempt<float>(rows, {systems}, true);
        }
    attempt<double>(545, {1200}, true);
    attempt<float>(1057, {1200}, true);
    attempt<double>(300, {3000}, false);
    attempt<float>(300, {3000}, false);
    attempt<float>(400, {4003}, false);
}

TEST_P(Size, ManySmallSystems) {
    for (const std::int64_t rows : {1, 2, 3, 8})
        for (const bool dominant : {true, false}) {
            attempt<double>(rows, {10007}, dominant);
            attempt<float>(rows, {10007}, dominant);
        }
}

TRIFOLD_ON_EVERY_DEVICE(Size);

}  // namespace
}  // namespace trifold::tests
