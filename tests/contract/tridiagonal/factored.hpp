// SPDX-License-Identifier: BSD-3-Clause
// What the tests of factored matrices share.
#pragma once

#include <utility>

#include "contract/tridiagonal/devices.hpp"
#include "contract/tridiagonal/trial.hpp"
#include "support/measure.hpp"

namespace trifold::tests {

class FactoredOnDevice : public OnDevice {
protected:
    template <class T>
    tridiagonal::Factor factor_of(const Trial<T>& trial) {
        return {queue, trial.problem().matrix, trial.recipe().rows, trial.recipe().batch, dtype_of<T>};
    }

    // x as `solve` would leave it.
    template <class T>
    void attempt(const Recipe& recipe) {
        SCOPED_TRACE(recipe.text());
        Trial<T> trial(recipe);
        const tridiagonal::Factor factor = factor_of(trial);
        ASSERT_TRUE(factor.outcome().ok()) << trifold::name_of(factor.outcome().reason);
        trial.expect_solved(factor.solve(trial.problem().rhs, trial.problem().x));
    }

    static Recipe recipe_of(std::int64_t rows, std::vector<std::int64_t> batch, Layout layout = Layout::contiguous) {
        Recipe recipe;
        recipe.rows = rows, recipe.batch = std::move(batch), recipe.layout = layout;
        recipe.seed = static_cast<std::uint64_t>(rows) * 7 + recipe.batch.size();
        return recipe;
    }

    // Row i of system k couples to nothing, not even to itself.
    template <class T>
    static void make_singular(Trial<T>& trial, std::int64_t i, std::int64_t k) {
        const std::int64_t n = trial.recipe().rows;
        const bool ring = trial.recipe().periodic;
        trial.coefficient(1, i, k) = 0;
        if (i > 0 || ring) trial.coefficient(0, i, k) = trial.coefficient(2, (i + n - 1) % n, k) = 0;
        if (i < n - 1 || ring) trial.coefficient(2, i, k) = trial.coefficient(0, (i + 1) % n, k) = 0;
    }

    // Waves: nothing decays.
    template <class T>
    static void set_rows(Trial<T>& trial, double lower, double diag, double upper) {
        for (std::int64_t k = 0; k < trial.systems(); ++k)
            for (std::int64_t i = 0; i < trial.recipe().rows; ++i) {
                if (i > 0) trial.coefficient(0, i, k) = static_cast<T>(lower);
                trial.coefficient(1, i, k) = static_cast<T>(diag);
                if (i + 1 < trial.recipe().rows) trial.coefficient(2, i, k) = static_cast<T>(upper);
            }
    }
};

}  // namespace trifold::tests
