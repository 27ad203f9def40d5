// SPDX-License-Identifier: BSD-3-Clause
// Arrays that lie unlike each other, of so many rows that a device may copy some of them first: every array with a layout of its own, parts that repeat, failures among them.
#include <algorithm>
#include <vector>

#include "contract/tridiagonal/devices.hpp"
#include "contract/tridiagonal/moved.hpp"
#include "contract/tridiagonal/trial.hpp"
#include "support/measure.hpp"

namespace trifold::tests {
namespace {

class Unlike : public OnDevice {
protected:
    void SetUp() override { TRIFOLD_NOT_THE_REFERENCE(); }

    template <class T>
    void solve(Recipe recipe) {
        for (const bool in_place : {false, true}) {
            recipe.in_place = in_place && !recipe.one_rhs && !recipe.accumulate;
            if (in_place != recipe.in_place) continue;
            Trial<T> trial(recipe);
            Moved<T> there(queue, trial, recipe.seed % 2 == 0);
            const Outcome outcome = tridiagonal::solve(queue, there.problem);
            there.bring_back();
            trial.expect_solved(outcome);
        }
    }

    static Recipe recipe_of(std::int64_t rows, std::vector<std::int64_t> batch, std::uint64_t seed) {
        Recipe recipe;
        recipe.rows = rows, recipe.batch = std::move(batch), recipe.mixed = true, recipe.seed = seed;
        recipe.around = seed % 2 ? Around::nan : Around::numbers;
        return recipe;
    }
};

TEST_P(Unlike, EveryArrayHasALayoutOfItsOwn) {
    const bool adds_nothing = GetParam().starts_with("opencl:");  // to x in memory of its own
    const Recipe shapes[] = {recipe_of(17, {15500}, 1), recipe_of(64, {3, 1400}, 2), recipe_of(257, {17, 61}, 3), recipe_of(1030, {257}, 4), recipe_of(4100, {65}, 5), recipe_of(9001, {2, 16}, 6)};
    for (const Recipe& shape : shapes)
        for (std::uint64_t seed = 0; seed < 4; ++seed) {
            Recipe recipe = shape;
            recipe.seed += 100 * seed, recipe.dominant = seed != 2, recipe.accumulate = seed == 3 && !adds_nothing;
            (shape.seed + seed) % 2 ? solve<double>(recipe) : solve<float>(recipe);
            if (HasFailure()) return;
        }
}

TEST_P(Unlike, PartsRepeat) {
    const Recipe shapes[] = {recipe_of(64, {30, 150}, 1), recipe_of(513, {9, 64}, 2), recipe_of(2050, {3, 48}, 3), recipe_of(5003, {60}, 4)};
    for (const Recipe& shape : shapes)
        for (const Layout layout : {Layout::interleaved, Layout::contiguous, Layout::reversed})
            for (const Source source : {Source::shared, Source::broadcast})
                for (const bool one_rhs : {false, true}) {
                    Recipe recipe = shape;
                    recipe.mixed = false, recipe.layout = layout, recipe.one_rhs = one_rhs;
                    recipe.lower = source, recipe.upper = one_rhs ? Source::full : source, recipe.diag = source == Source::shared ? Source::full : source;
                    recipe.dominant = source == Source::shared || !one_rhs;
                    (shape.seed % 2 == 0) == one_rhs ? solve<double>(recipe) : solve<float>(recipe);
                    if (HasFailure()) return;
                }
}

TEST_P(Unlike, FailedSystemsAreNamedAndLeftAlone) {
    for (const bool in_place : {false, true})
        for (std::uint64_t seed = 1; seed <= 4; ++seed) {
            Recipe recipe = recipe_of(100, {3, 1000}, seed);
            recipe.in_place = in_place;
            SCOPED_TRACE(recipe.text());
            Trial<double> trial(recipe);
            const std::int64_t bad[] = {13, 1998};
            for (const std::int64_t k : bad) {
                trial.coefficient(1, 50, k) = 0;
                trial.coefficient(0, 50, k) = trial.coefficient(2, 49, k) = trial.coefficient(2, 50, k) = trial.coefficient(0, 51, k) = 0;
            }
            Moved<double> there(queue, trial, false);
            std::vector<std::vector<double>> before;
            for (const std::int64_t k : bad) before.push_back(trial.stored(k));
            std::vector<std::int8_t> status(static_cast<std::size_t>(trial.systems()), 77);
            tridiagonal::Options options;
            options.status = status.data();
            const Outcome outcome = seed % 2 ? tridiagonal::solve(queue, there.problem, options) : tridiagonal::solve(queue, there.problem);
            there.bring_back();
            EXPECT_EQ(outcome.reason, Reason::singular);
            EXPECT_EQ(outcome.system, bad[0]);
            EXPECT_EQ(outcome.row, 50);
            EXPECT_EQ(outcome.failures, 2);
            for (std::int64_t k = 0; k < trial.systems(); ++k) {
                const auto* const found = std::ranges::find(bad, k);
                if (seed % 2) { ASSERT_EQ(status[static_cast<std::size_t>(k)] < 0, found != std::end(bad)) << "system " << k; }
                if (found == std::end(bad)) {
                    ASSERT_LE(backward_error(trial.system(k), trial.solution(k)), 20 * unit_roundoff(DType::f64)) << "system " << k;
                } else if (in_place) {
                    // To rounding: some devices solve in place and take it back.
                    const std::vector<double> left = trial.stored(k), &was = before[static_cast<std::size_t>(found - bad)];
                    for (std::size_t i = 0; i < left.size(); ++i) ASSERT_NEAR(left[i], was[i], 1e-12 * largest(was)) << "system " << k << ", row " << i;
                }
            }
        }
}

TRIFOLD_ON_EVERY_DEVICE(Unlike);

}  // namespace
}  // namespace trifold::tests
