// SPDX-License-Identifier: BSD-3-Clause
// Batches of indefinite systems by LU, of lengths around those where devices share a system among more workers, or hold it elsewhere.
#include <cmath>
#include <cstring>

#include "contract/tridiagonal/devices.hpp"
#include "contract/tridiagonal/trial.hpp"
#include "support/measure.hpp"

namespace trifold::tests {
namespace {

class Pivoted : public OnDevice {
protected:
    static tridiagonal::Options by_lu() {
        tridiagonal::Options options;
        options.algorithm = tridiagonal::Algorithm::lu;
        return options;
    }

    static Recipe recipe_of(std::int64_t rows, std::int64_t systems, Layout layout, bool in_place) {
        Recipe recipe;
        recipe.rows = rows, recipe.batch = {systems}, recipe.layout = layout, recipe.in_place = in_place, recipe.dominant = false;
        recipe.seed = static_cast<std::uint64_t>(rows + systems);
        return recipe;
    }

    template <class T>
    void attempt(const Recipe& recipe, const tridiagonal::Options& options) {
        SCOPED_TRACE(recipe.text());
        Trial<T> trial(recipe);
        trial.expect_solved(tridiagonal::solve(queue, trial.problem(), options));
    }
};

TEST_P(Pivoted, BatchesOfEveryLength) {
    for (const std::int64_t rows : {15, 16, 33, 63, 64, 65, 100, 127, 128, 129, 255, 257, 513, 1000, 1777, 2048, 3500, 3571, 4096, 7205, 7260, 7300, 14400, 14600})
        for (const std::int64_t systems : {2, 11, 300})
            for (const Layout layout : layouts) {
                if (rows * systems > 40000) continue;
                const Recipe recipe = recipe_of(rows, systems, layout, systems == 11);
                attempt<double>(recipe, by_lu());
                attempt<float>(recipe, by_lu());
                if (HasFailure()) return;
            }
}

// One system, or a few, by what is chosen for them; they are found to need pivots.
TEST_P(Pivoted, OneSystemOfEveryLength) {
    for (const std::int64_t rows : {20, 63, 64, 65, 100, 300, 511, 512, 777, 1024, 2000, 4096, 4100, 4608, 4609, 9000, 25000})
        for (const bool in_place : {false, true}) {
            Recipe recipe = recipe_of(rows, 1, Layout::contiguous, in_place);
            recipe.batch.clear();
            attempt<double>(recipe, {});
            attempt<float>(recipe, {});
        }
    for (const std::int64_t rows : {20, 64, 100, 300})
        for (const std::int64_t systems : {2, 5}) {
            attempt<double>(recipe_of(rows, systems, Layout::contiguous, false), {});
            attempt<float>(recipe_of(rows, systems, Layout::contiguous, true), {});
        }
}

// Dominant but for one row, in front, in the middle or at the end: little, hardly, of extreme size, not finite, or coupled to nothing.
TEST_P(Pivoted, OneSystemWithOneOddRow) {
    for (const std::int64_t rows : {512, 2000, 4096, 4600})
        for (const std::int64_t row : {std::int64_t{0}, rows / 2, rows - 1})
            for (const double diag : {0.0, 1e-3, 0.7, 1e-200, 1e200, double{NAN}})
                for (const double rhs : {1.0, 1e300, double{NAN}}) {
                    SCOPED_TRACE(testing::Message() << rows << " rows, row " << row << ", diag " << diag << ", rhs " << rhs);
                    Recipe recipe = recipe_of(rows, 1, Layout::contiguous, true);
                    recipe.batch.clear(), recipe.dominant = true;
                    Trial<double> trial(recipe);
                    trial.coefficient(1, row, 0) = diag, trial.rhs(row, 0) = rhs;
                    const std::vector<double> before = trial.stored(0);
                    const Outcome outcome = tridiagonal::solve(queue, trial.problem());
                    if (std::isfinite(diag) && std::isfinite(rhs)) {
                        ASSERT_TRUE(outcome.ok()) << trifold::name_of(outcome.reason);
                        Bands<double> system = trial.system(0);
                        system.rhs[row] = rhs;
                        ASSERT_LE(backward_error(system, trial.solution(0)), 20 * unit_roundoff(DType::f64));
                    } else {
                        ASSERT_EQ(outcome.reason, Reason::not_finite);
                        // Others may have overwritten the one system's right-hand side by then.
                        if (GetParam().starts_with("cuda")) {
                            ASSERT_EQ(std::memcmp(before.data(), trial.stored(0).data(), before.size() * sizeof(double)), 0);
                        }
                    }
                }
}

// One system in twelve needs pivots.
TEST_P(Pivoted, AFewOfABatch) {
    for (const std::int64_t rows : {64, 100, 500, 2048, 4000, 8000})
        for (const Layout layout : layouts) {
            Recipe recipe = recipe_of(rows, 24, layout, rows == 500);
            recipe.dominant = true;
            Trial<double> trial(recipe);
            for (const std::int64_t k : {std::int64_t{3}, std::int64_t{20}})
                for (std::int64_t i = 0; i < rows; ++i) {
                    trial.coefficient(1, i, k) = 0;
                    if (i > 0) trial.coefficient(0, i, k) = 1;
                    if (i + 1 < rows) trial.coefficient(2, i, k) = -1;
                }
            SCOPED_TRACE(recipe.text());
            const Outcome outcome = tridiagonal::solve(queue, trial.problem());
            ASSERT_TRUE(outcome.ok()) << trifold::name_of(outcome.reason);
            for (std::int64_t k = 0; k < trial.systems(); ++k) ASSERT_LE(backward_error(trial.system(k), trial.solution(k)), 20 * unit_roundoff(DType::f64)) << "system " << k;
        }
}

TEST_P(Pivoted, WhatCannotBeSolvedIsNamedAndLeftAsItWas) {
    for (const std::int64_t rows : {20, 64, 200, 1000, 3000, 5000})
        for (const std::int64_t row : {std::int64_t{0}, rows / 3, rows - 1})
            for (const Layout layout : layouts) {
                SCOPED_TRACE(testing::Message() << rows << " rows, " << name_of(layout) << ", row " << row);
                Trial<double> trial(recipe_of(rows, 9, layout, true));
                // Row `row` of system 4 couples to nothing, not even to itself; one of system 6 has a right-hand side that is not finite.
                trial.coefficient(1, row, 4) = 0;
                if (row > 0) trial.coefficient(0, row, 4) = trial.coefficient(2, row - 1, 4) = 0;
                if (row + 1 < rows) trial.coefficient(2, row, 4) = trial.coefficient(0, row + 1, 4) = 0;
                trial.rhs(row, 6) = NAN;
                std::vector<std::int8_t> status(9, 77);
                tridiagonal::Options options = by_lu();
                options.status = status.data();
                const std::vector<double> before[2] = {trial.stored(4), trial.stored(6)};
                const Outcome outcome = tridiagonal::solve(queue, trial.problem(), options);
                EXPECT_EQ(outcome.reason, Reason::singular);
                EXPECT_EQ(outcome.system, 4);
                EXPECT_EQ(outcome.row, row);
                EXPECT_EQ(outcome.failures, 2);
                EXPECT_EQ(status[6], static_cast<std::int8_t>(Reason::not_finite));
                for (const int k : {4, 6}) {
                    const std::vector<double> now = trial.stored(k);
                    for (std::int64_t i = 0; i < rows; ++i)
                        ASSERT_TRUE(now[i] == before[k / 2 - 2][i] || (std::isnan(now[i]) && std::isnan(before[k / 2 - 2][i]))) << "system " << k << ", row " << i;
                }
                for (std::int64_t k = 0; k < 9; ++k)
                    if (k != 4 && k != 6) { ASSERT_LE(backward_error(trial.system(k), trial.solution(k)), 20 * unit_roundoff(DType::f64)) << "system " << k; }
            }
}

TRIFOLD_ON_EVERY_DEVICE(Pivoted);

}  // namespace
}  // namespace trifold::tests
