// SPDX-License-Identifier: BSD-3-Clause
// The cpu's kernels in every instruction set that was compiled and that this machine has.
#include <hwy/highway.h>

#include "contract/tridiagonal/devices.hpp"
#include "contract/tridiagonal/trial.hpp"

namespace trifold::tests {
namespace {

class SimdTarget : public testing::TestWithParam<std::int64_t> {
protected:
    void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
    void TearDown() override { hwy::SetSupportedTargetsForTest(0); }

    template <class T>
    void attempt(const Recipe& recipe) {
        SCOPED_TRACE(hwy::TargetName(GetParam()));
        Queue queue(context(), "cpu");
        Trial<T> trial(recipe);
        trial.expect_solved(tridiagonal::solve(queue, trial.problem()));
    }

    template <class T>
    void attempt_factored(const Recipe& recipe) {
        SCOPED_TRACE(hwy::TargetName(GetParam()));
        Queue queue(context(), "cpu");
        Trial<T> trial(recipe);
        const tridiagonal::Factor factor(queue, trial.problem().matrix, recipe.rows, recipe.batch, dtype_of<T>);
        ASSERT_TRUE(factor.outcome().ok());
        trial.expect_solved(factor.solve(trial.problem().rhs, trial.problem().x));
    }
};

TEST_P(SimdTarget, SingleSystems) {
    for (const std::int64_t rows : {1, 2, 5, 64, 100, 257, 1000, 4099, 16411, 100003})
        for (const bool dominant : {true, false})
            for (const bool in_place : {true, false}) {
                Recipe recipe;
                recipe.rows = rows, recipe.dominant = dominant, recipe.in_place = in_place;
                attempt<double>(recipe);
                attempt<float>(recipe);
            }
}

TEST_P(SimdTarget, Batches) {
    for (const std::int64_t rows : {1, 2, 3, 7, 16, 33, 129, 1000})
        for (const std::int64_t systems : {1, 3, 8, 17, 65})
            for (const Layout layout : {Layout::contiguous, Layout::interleaved, Layout::scattered})
                for (const bool dominant : {true, false}) {
                    Recipe recipe;
                    recipe.rows = rows, recipe.batch = {systems}, recipe.layout = layout, recipe.dominant = dominant;
                    recipe.in_place = rows % 2 == 1;
                    attempt<double>(recipe);
                    attempt<float>(recipe);
                }
}

TEST_P(SimdTarget, Combinations) {
    for (std::uint64_t seed = 1; seed <= 150; ++seed) {
        attempt<double>(random_recipe(seed));
        attempt<float>(random_recipe(seed + 5000));
        if (HasFailure()) FAIL() << "seed " << seed;
    }
}

TEST_P(SimdTarget, KeptFactors) {
    for (const std::int64_t rows : {1, 2, 3, 7, 16, 33, 129, 1000, 5003, 20011})
        for (const std::vector<std::int64_t>& batch : {std::vector<std::int64_t>{}, {3}, {65}})
            for (const Layout layout : {Layout::contiguous, Layout::interleaved, Layout::scattered})
                for (const bool periodic : {false, true}) {
                    if (rows > 1000 && (!batch.empty() || layout == Layout::interleaved || periodic)) continue;
                    Recipe recipe;
                    recipe.rows = rows, recipe.batch = batch, recipe.layout = layout, recipe.periodic = periodic;
                    recipe.in_place = rows % 2 == 1;
                    attempt_factored<double>(recipe);
                    attempt_factored<float>(recipe);
                }
}

INSTANTIATE_TEST_SUITE_P(Generated, SimdTarget, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& info) { return std::string(hwy::TargetName(info.param)); });

}  // namespace
}  // namespace trifold::tests
