// SPDX-License-Identifier: BSD-3-Clause
// Long systems of one matrix, so many that a device walks down them: of so many rows in all, and where rows end.
#include <vector>

#include "contract/tridiagonal/devices.hpp"
#include "contract/tridiagonal/trial.hpp"

namespace trifold::tests {
namespace {

class SharedLong : public OnDevice {
protected:
    void SetUp() override { TRIFOLD_NOT_THE_REFERENCE(); }

    static Recipe recipe_of(std::int64_t rows, std::int64_t systems, Layout layout, std::uint64_t seed, bool in_place) {
        Recipe recipe;
        recipe.rows = rows, recipe.batch = {systems}, recipe.layout = layout, recipe.seed = seed, recipe.in_place = in_place;
        recipe.lower = recipe.diag = recipe.upper = Source::shared;
        return recipe;
    }

    /// A last row that ends within a vector, each system beginning with one.
    template <class T>
    void gaps_stay(std::int64_t rows, std::uint64_t seed) {
        constexpr auto vector = static_cast<std::int64_t>(16 / sizeof(T));
        for (const bool in_place : {false, true}) {
            const Trial<T> trial(recipe_of(rows, 13, Layout::padded, seed, in_place));
            ASSERT_NE(rows % vector, 0);
            ASSERT_EQ(trial.problem().rhs.batch[0].stride % vector, 0) << "find a seed whose gaps make it so";
            ASSERT_EQ(trial.problem().x.batch[0].stride % vector, 0) << "find a seed whose gaps make it so";
            trial.expect_solved(tridiagonal::solve(queue, trial.problem()));
        }
    }
};

// The copy engine stores whole vectors.
TEST_P(SharedLong, GapsBehindRowsStay) {
    gaps_stay<double>(170001, 3), gaps_stay<double>(170001, 4);
    gaps_stay<float>(330003, 5), gaps_stay<float>(330002, 25);
}

// Of fewer rows in all other kernels may be faster.
TEST_P(SharedLong, ManyRowsInAll) {
    for (const bool in_place : {false, true}) {
        const Recipe rows = recipe_of(2501, 1680, Layout::contiguous, 2501, in_place), columns = recipe_of(4000, 1051, Layout::interleaved, 4000, !in_place);
        expect_solved<double>(queue, in_place ? columns : rows);
        expect_solved<float>(queue, in_place ? rows : columns);
    }
}

TRIFOLD_ON_EVERY_DEVICE(SharedLong);

}  // namespace
}  // namespace trifold::tests
