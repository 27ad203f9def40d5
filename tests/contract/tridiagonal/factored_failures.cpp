// SPDX-License-Identifier: BSD-3-Clause
// What cannot be factored, or solved with the factors, is named.
#include <cmath>

#include "contract/tridiagonal/factored.hpp"

namespace trifold::tests {
namespace {

using tridiagonal::Factor;

class FactoredFailure : public FactoredOnDevice {};

TEST_P(FactoredFailure, SingularOnesAmongManyAreNamed) {
    Recipe recipe = recipe_of(200, {4000});
    Trial<double> trial(recipe);
    make_singular(trial, 7, 3001), make_singular(trial, 150, 44);
    Factor factor = factor_of(trial);
    EXPECT_EQ(factor.outcome().reason, Reason::singular);
    EXPECT_EQ(factor.outcome().failures, 2);
    EXPECT_EQ(factor.outcome().system, 44);
    EXPECT_EQ(factor.outcome().row, 150);
    EXPECT_THROW((void)factor.solve(trial.problem().rhs, trial.problem().x), Error);
    Trial<double> next(recipe);
    ASSERT_TRUE(factor.refactor(next.problem().matrix).ok());
    next.expect_solved(factor.solve(next.problem().rhs, next.problem().x));
}

TEST_P(FactoredFailure, SingularMatricesAreNamed) {
    for (const bool periodic : {false, true})
        for (const std::int64_t rows : {1, 2, 9, 100, 5000})
            for (const std::int64_t systems : {0, 4, 50}) {
                if (rows * systems > 10000) continue;
                SCOPED_TRACE(testing::Message() << rows << " rows, " << systems << " systems, periodic " << periodic);
                Recipe recipe = recipe_of(rows, systems ? std::vector<std::int64_t>{systems} : std::vector<std::int64_t>{});
                recipe.periodic = periodic;
                Trial<double> trial(recipe);
                const std::int64_t bad = systems > 3 ? systems - 2 : 0;
                make_singular(trial, rows / 2, bad);
                if (systems > 3) make_singular(trial, rows - 1, 1);
                Factor factor = factor_of(trial);
                EXPECT_EQ(factor.outcome().reason, Reason::singular);
                EXPECT_EQ(factor.outcome().failures, systems > 3 ? 2 : 1);
                EXPECT_EQ(factor.outcome().system, systems > 3 ? 1 : 0);
                EXPECT_GE(factor.outcome().row, 0);
                if (!periodic) { EXPECT_EQ(factor.outcome().row, systems > 3 ? rows - 1 : rows / 2); }
                EXPECT_THROW((void)factor.solve(trial.problem().rhs, trial.problem().x), Error);
            }
}

TEST_P(FactoredFailure, AMatrixThatIsNotFiniteIsNamed) {
    for (const double value : {double(NAN), double(INFINITY)})
        for (const std::int64_t rows : {1, 9, 5000})
            for (const std::int64_t systems : {0, 20})
                for (int band = 0; band < 3; ++band) {
                    if (rows * systems > 10000) continue;
                    const std::int64_t row = band == 0 ? rows - 1 : rows / 2, k = systems ? 7 : 0;
                    if ((band == 0 && row == 0) || (band == 2 && row == rows - 1)) continue;
                    Trial<double> trial(recipe_of(rows, systems ? std::vector<std::int64_t>{systems} : std::vector<std::int64_t>{}));
                    trial.coefficient(band, row, k) = value;
                    const Factor factor = factor_of(trial);
                    EXPECT_EQ(factor.outcome().reason, Reason::not_finite);
                    EXPECT_EQ(factor.outcome().system, k);
                    EXPECT_EQ(factor.outcome().row, row);
                }
}

TEST_P(FactoredFailure, ARightHandSideThatIsNotFiniteFailsAlone) {
    for (const bool dominant : {true, false})
        for (const Layout layout : {Layout::contiguous, Layout::interleaved})
            for (const std::int64_t rows : {1, 9, 100, 1000})
                for (const bool in_place : {false, true})
                    for (const bool periodic : {false, true}) {
                        SCOPED_TRACE(testing::Message() << name_of(layout) << ", " << rows << " rows, dominant " << dominant << ", in place " << in_place
                                                        << ", periodic " << periodic);
                        Recipe recipe = recipe_of(rows, {40}, layout);
                        recipe.dominant = dominant, recipe.in_place = in_place, recipe.periodic = periodic;
                        Trial<double> trial(recipe);
                        const Factor factor = factor_of(trial);
                        ASSERT_TRUE(factor.outcome().ok());
                        trial.rhs(rows / 2, 13) = NAN;
                        const Outcome outcome = factor.solve(trial.problem().rhs, trial.problem().x);
                        EXPECT_EQ(outcome.reason, Reason::not_finite);
                        EXPECT_EQ(outcome.system, 13);
                        EXPECT_EQ(outcome.failures, 1);
                        EXPECT_GE(outcome.row, 0);
                        for (std::int64_t k = 0; k < 40; ++k)
                            if (k != 13) { ASSERT_LE(backward_error(trial.system(k), trial.solution(k)), 20 * unit_roundoff(DType::f64)) << "system " << k; }
                    }
}

// In place, x or what is on the way to it has taken the place of other rows by the time that this is seen.
TEST_P(FactoredFailure, TheFirstRowOfALongRightHandSideThatIsNotFiniteIsNamed) {
    const auto one = [&]<class T>(T, double diag, std::int64_t rows, std::int64_t row, bool in_place, const std::vector<std::int64_t>& batch) {
        SCOPED_TRACE(testing::Message() << rows << " rows, row " << row << ", " << diag << " on the diagonal, in place " << in_place << ", " << batch.size() << " dimensions, " << sizeof(T));
        Recipe recipe = recipe_of(rows, batch);
        recipe.in_place = in_place;
        Trial<T> trial(recipe);
        set_rows(trial, -1, diag, -1);
        const Factor factor = factor_of(trial);
        ASSERT_TRUE(factor.outcome().ok());
        const std::int64_t last = batch.empty() ? 0 : batch[0] - 1;
        trial.rhs(row, last) = static_cast<T>(INFINITY), trial.rhs(std::min(row + 7, rows - 1), last) = static_cast<T>(NAN);
        const Outcome outcome = factor.solve(trial.problem().rhs, trial.problem().x);
        EXPECT_EQ(outcome.reason, Reason::not_finite);
        EXPECT_EQ(outcome.failures, 1);
        EXPECT_EQ(outcome.system, last);
        if (queue.memory().kind == MemoryKind::device) { EXPECT_GE(outcome.row, 0); }  // as solve names it there
        else { EXPECT_EQ(outcome.row, row); }
    };
    for (const double diag : {2.0, 4.0, 0.5})
        for (const std::int64_t rows : {300, 4304, 5000, 30000})
            for (const std::int64_t row : {std::int64_t{0}, rows / 3, rows / 2 - 1, rows / 2, rows / 2 + 1, rows * 3 / 4, rows - 1})
                for (const bool in_place : {false, true})
                    for (const std::vector<std::int64_t>& batch : {std::vector<std::int64_t>{}, std::vector<std::int64_t>{3}}) {
                        one(float(), diag, rows, row, in_place, batch);
                        if (rows < 30000) one(double(), diag, rows, row, in_place, batch);
                    }
}

// Few long matrices, one after the other: each was once counted again with every one after it, where the machine has more than three cores.
TEST_P(FactoredFailure, LongRightHandSidesThatAreNotFiniteAreCountedOnce) {
    for (const double diag : {1.9, 4.0})
        for (const std::int64_t rows : {4351, 9000}) {
            Trial<float> trial(recipe_of(rows, {7}));
            set_rows(trial, -1, diag, -1);
            const Factor factor = factor_of(trial);
            ASSERT_TRUE(factor.outcome().ok());
            for (const std::int64_t k : {1, 2, 3, 5}) trial.rhs(rows / 2, k) = NAN;
            const Outcome outcome = factor.solve(trial.problem().rhs, trial.problem().x);
            EXPECT_EQ(outcome.reason, Reason::not_finite);
            EXPECT_EQ(outcome.system, 1);
            EXPECT_EQ(outcome.failures, 4);
            const double gathered = GetParam() == "reference" ? 60 : 20;  // of waves, by LU
            for (const std::int64_t k : {0, 4, 6}) { ASSERT_LE(backward_error(trial.system(k), trial.solution(k)), gathered * unit_roundoff(DType::f32)) << "system " << k; }
        }
}

TEST_P(FactoredFailure, ShapesThatDoNotFitAreRefused) {
    Trial<double> trial(recipe_of(9, {4}));
    const Factor factor = factor_of(trial);
    std::vector<double> values(36), x(36);
    EXPECT_THROW((void)factor.solve(View<double>::rows(values), View<double>::rows(x)), Error);
    std::vector<float> single(36), single_x(36);
    const Dim batch[] = {{4, 9}};
    EXPECT_THROW((void)factor.solve(View<float>::strided(single.data(), {9, 1}, batch), View<float>::strided(single_x.data(), {9, 1}, batch)), Error);
}

TEST_P(FactoredFailure, WhatWasMovedAwayIsRefused) {
    Trial<double> trial(recipe_of(9, {4}));
    Factor factor = factor_of(trial);
    const Factor taken = std::move(factor);
    EXPECT_TRUE(taken.outcome().ok());
    EXPECT_EQ(factor.outcome().reason, Reason::none);
    EXPECT_THROW((void)factor.solve(trial.problem().rhs, trial.problem().x), Error);
    EXPECT_THROW((void)factor.refactor(trial.problem().matrix), Error);
    (void)taken.solve(trial.problem().rhs, trial.problem().x);
}

TEST_P(FactoredFailure, MoreThanMemoryHoldsIsRefused) {
    for (const std::int64_t rows : {std::int64_t{1} << 40, std::int64_t{1} << 53, (std::int64_t{1} << 53) + 1, INT64_MAX / 60 + 1, INT64_MAX})
        EXPECT_THROW(Factor(queue, tridiagonal::Matrix{-1.0, 4.0, -1.0}, rows), Error) << rows;
}

TRIFOLD_ON_EVERY_DEVICE(FactoredFailure);

}  // namespace
}  // namespace trifold::tests
