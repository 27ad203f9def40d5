// SPDX-License-Identifier: BSD-3-Clause
// What tests of systems that need pivots share.
#pragma once

#include "contract/tridiagonal/devices.hpp"
#include "contract/tridiagonal/trial.hpp"

namespace trifold::tests {

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

}  // namespace trifold::tests
