// SPDX-License-Identifier: BSD-3-Clause
// Systems of so few rows that a device may have one in a thread's registers: any layout, with and without pivots, and those that fail beside others.
#include <cmath>
#include <limits>

#include "contract/tridiagonal/devices.hpp"
#include "contract/tridiagonal/trial.hpp"
#include "support/measure.hpp"

namespace trifold::tests {
namespace {

class FewRows : public OnDevice {};

template <class T>
void of_any_layout(Queue& queue, std::int64_t rows) {
    const std::vector<std::int64_t> batches[] = {{}, {33}, {300}, {3, 50}};
    for (const auto& batch : batches)
        for (const Layout layout : layouts)
            for (const bool dominant : {true, false})
                for (const bool in_place : {false, true}) {
                    Recipe recipe;
                    recipe.rows = rows, recipe.batch = batch, recipe.layout = layout, recipe.dominant = dominant, recipe.in_place = in_place;
                    recipe.mixed = rows % 3 == 1, recipe.seed = static_cast<std::uint64_t>(100 * rows) + batch.size();
                    SCOPED_TRACE(recipe.text());
                    expect_solved<T>(queue, recipe);
                    if (testing::Test::HasFailure()) return;
                }
}

TEST_P(FewRows, OfAnyLayout) {
    for (std::int64_t rows = 1; rows <= 17; ++rows) of_any_layout<double>(queue, rows), of_any_layout<float>(queue, rows);
}

// Parts of the matrix that all systems share, or that are numbers.
TEST_P(FewRows, WithCouplingsOfAllSystems) {
    for (const std::int64_t rows : {2, 5, 8, 13, 16})
        for (const Source lower : {Source::full, Source::packed, Source::shared, Source::scalar})
            for (const Source diag : {Source::full, Source::shared, Source::scalar})
                for (const Layout layout : {Layout::contiguous, Layout::interleaved, Layout::padded}) {
                    Recipe recipe;
                    recipe.rows = rows, recipe.batch = {77}, recipe.layout = layout, recipe.lower = recipe.upper = lower, recipe.diag = diag;
                    SCOPED_TRACE(recipe.text());
                    expect_solved<double>(queue, recipe);
                    expect_solved<float>(queue, recipe);
                    if (HasFailure()) return;
                }
}

// Of one system no row couples to another, of the next one a number is not one, of a third one x is too large; 1e-300 is a pivot like any other.
TEST_P(FewRows, AreNamedWhereTheyFail) {
    constexpr std::int64_t systems = 200;
    for (const std::int64_t rows : {1, 2, 3, 7, 8, 11, 16})
        for (const Layout layout : layouts)
            for (const bool in_place : {false, true})
                for (const std::int64_t row : {std::int64_t{0}, rows / 2, rows - 1}) {
                    Recipe recipe;
                    recipe.rows = rows, recipe.batch = {systems}, recipe.layout = layout, recipe.in_place = in_place;
                    SCOPED_TRACE(testing::Message() << recipe.text() << ", row " << row);
                    Trial<double> trial(recipe);
                    std::vector<Reason> expected(systems, Reason::exact);
                    const auto alone = [&](std::int64_t k, double pivot) {
                        trial.coefficient(1, row, k) = pivot;
                        if (row > 0) trial.coefficient(0, row, k) = trial.coefficient(2, row - 1, k) = 0;
                        if (row + 1 < rows) trial.coefficient(2, row, k) = trial.coefficient(0, row + 1, k) = 0;
                    };
                    const auto fails = [&](std::int64_t k, Reason reason) { expected[static_cast<std::size_t>(k)] = reason; };
                    alone(40, 0), fails(40, Reason::singular);
                    alone(41, 1e-200), trial.rhs(row, 41) = 1e200, fails(41, Reason::not_finite);
                    alone(42, 1e-300), trial.rhs(row, 42) = 1e-3;
                    trial.rhs(row, 43) = std::numeric_limits<double>::quiet_NaN(), fails(43, Reason::not_finite);
                    trial.coefficient(1, row, 44) = std::numeric_limits<double>::infinity(), fails(44, Reason::not_finite);
                    if (row > 0) trial.coefficient(0, row, 45) = -std::numeric_limits<double>::infinity(), fails(45, Reason::not_finite);
                    if (row + 1 < rows) trial.coefficient(2, row, 46) = std::numeric_limits<double>::infinity(), fails(46, Reason::not_finite);
                    alone(systems - 1, 0), fails(systems - 1, Reason::singular);
                    const std::vector<double> before = trial.stored(40);
                    std::vector<std::int8_t> status(systems + 2, 77);
                    tridiagonal::Options options;
                    options.status = status.data() + 1;
                    const Outcome outcome = tridiagonal::solve(queue, trial.problem(), options);
                    EXPECT_EQ(outcome.reason, Reason::singular);
                    EXPECT_EQ(outcome.system, 40);
                    EXPECT_EQ(outcome.row, row);
                    EXPECT_EQ(outcome.failures, std::ranges::count_if(expected, [](Reason reason) { return reason != Reason::exact; }));
                    EXPECT_EQ(status.front(), 77);
                    EXPECT_EQ(status.back(), 77);
                    if (in_place) { EXPECT_EQ(trial.stored(40), before); }
                    for (std::int64_t k = 0; k < systems; ++k) {
                        ASSERT_EQ(status[static_cast<std::size_t>(k + 1)], static_cast<std::int8_t>(expected[static_cast<std::size_t>(k)])) << "system " << k;
                        if (expected[static_cast<std::size_t>(k)] == Reason::exact && k != 42) {
                            ASSERT_LE(backward_error(trial.system(k), trial.solution(k)), 20 * unit_roundoff(DType::f64)) << "system " << k;
                        }
                    }
                }
}

TRIFOLD_ON_EVERY_DEVICE(FewRows);

}  // namespace
}  // namespace trifold::tests
