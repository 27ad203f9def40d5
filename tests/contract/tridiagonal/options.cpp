// SPDX-License-Identifier: BSD-3-Clause
// Every option alone, in every layout, over sizes that hit the edges of vectors and tiles.
#include "contract/tridiagonal/devices.hpp"
#include "contract/tridiagonal/trial.hpp"

namespace trifold::tests {
namespace {

class Option : public OnDevice {
protected:
    template <class Change>
    void everywhere(Change change) {
        for (const std::int64_t rows : {1, 2, 3, 5, 16, 33, 64, 127})
            for (const Layout layout : layouts)
                for (const std::vector<std::int64_t>& batch : {std::vector<std::int64_t>{}, {1}, {5}, {37}, {3, 7}}) {
                    Recipe recipe;
                    recipe.rows = rows;
                    recipe.batch = batch;
                    recipe.layout = layout;
                    recipe.seed = static_cast<std::uint64_t>(rows) * 31 + batch.size();
                    change(recipe);
                    expect_solved<double>(queue, recipe);
                    expect_solved<float>(queue, recipe);
                    recipe.dominant = false;
                    expect_solved<double>(queue, recipe);
                    if (HasFatalFailure()) return;
                }
    }
};

TEST_P(Option, None) { everywhere([](Recipe&) {}); }
TEST_P(Option, InPlace) { everywhere([](Recipe& r) { r.in_place = true; }); }
TEST_P(Option, Accumulate) { everywhere([](Recipe& r) { r.accumulate = true; }); }
TEST_P(Option, Periodic) { everywhere([](Recipe& r) { r.periodic = true; }); }
TEST_P(Option, PeriodicInPlace) { everywhere([](Recipe& r) { r.periodic = r.in_place = true; }); }
TEST_P(Option, Transposed) { everywhere([](Recipe& r) { r.transposed = true; }); }
TEST_P(Option, TransposedPeriodic) { everywhere([](Recipe& r) { r.transposed = r.periodic = true; }); }
TEST_P(Option, Packed) { everywhere([](Recipe& r) { r.lower = r.upper = Source::packed; }); }
TEST_P(Option, PackedTransposed) { everywhere([](Recipe& r) { r.lower = r.upper = Source::packed, r.transposed = true; }); }
TEST_P(Option, OneRightHandSide) { everywhere([](Recipe& r) { r.one_rhs = true; }); }
TEST_P(Option, ManyRightHandSides) { everywhere([](Recipe& r) { r.lower = r.diag = r.upper = Source::shared; }); }
TEST_P(Option, BroadcastAlongSome) { everywhere([](Recipe& r) { r.lower = r.diag = r.upper = Source::broadcast; }); }
TEST_P(Option, Scalars) {
    everywhere([](Recipe& r) { r.lower = r.diag = r.upper = Source::scalar, r.dominant = true; });
}
TEST_P(Option, ScalarCouplings) { everywhere([](Recipe& r) { r.lower = r.upper = Source::scalar; }); }
TEST_P(Option, ConstantAlongRows) { everywhere([](Recipe& r) { r.diag = Source::flat; }); }
TEST_P(Option, Generated) { everywhere([](Recipe& r) { r.lower = r.diag = r.upper = Source::generator; }); }
TEST_P(Option, GeneratedTransposedPeriodic) {
    everywhere([](Recipe& r) { r.lower = r.diag = r.upper = Source::generator, r.transposed = r.periodic = true; });
}

TEST_P(Option, Ragged) {
    for (const bool periodic : {false, true})
        for (const bool in_place : {false, true})
            for (const bool transposed : {false, true}) {
                if (periodic && transposed) continue;
                for (const std::vector<std::int64_t>& lengths : {std::vector<std::int64_t>{}, {0}, {7}, {0, 1, 2, 3, 0, 40}, {64, 63, 65, 1, 1, 200, 5, 0}, {300, 4, 4, 4, 4, 4, 4, 4, 4, 4}}) {
                    Recipe recipe;
                    recipe.lengths = lengths;
                    if (lengths.empty()) continue;
                    for (const std::int64_t length : lengths) recipe.rows += length;
                    recipe.periodic = periodic, recipe.in_place = in_place, recipe.transposed = transposed;
                    for (const Layout layout : layouts)
                        for (const Source source : {Source::full, Source::generator}) {
                            recipe.layout = layout;
                            recipe.lower = recipe.upper = source;
                            Trial<double> trial(recipe);
                            trial.expect_solved(tridiagonal::solve(queue, trial.problem()));
                            Trial<float> single(recipe);
                            single.expect_solved(tridiagonal::solve(queue, single.problem()));
                        }
                }
            }
}

TEST_P(Option, NothingToSolve) {
    for (const std::vector<std::int64_t>& batch : {std::vector<std::int64_t>{}, {0}, {4, 0}, {0, 3}, {5}})
        for (const std::int64_t rows : {0, 6}) {
            Recipe recipe;
            recipe.batch = batch;
            recipe.rows = rows;
            if (rows > 0 && Trial<double>(recipe).systems() > 0) continue;
            Trial<double> trial(recipe);
            Report report;
            report.rows = 77, report.total_s = 77, report.roof.fraction = 77;  // of a solve before
            tridiagonal::Options options;
            options.report = &report;
            const Outcome outcome = tridiagonal::solve(queue, trial.problem(), options);
            EXPECT_EQ(outcome.reason, Reason::none);
            EXPECT_TRUE(outcome.ok());
            EXPECT_EQ(report.rows, recipe.rows);
            EXPECT_EQ(report.systems, trial.systems());
            EXPECT_EQ(report.total_s, 0);
            EXPECT_EQ(report.roof.fraction, 0);
            EXPECT_EQ(report.outcome.reason, Reason::none);
            EXPECT_EQ(report.plan.why, "nothing to solve");
            EXPECT_TRUE(trial.surroundings_untouched());
        }
}

TEST_P(Option, Combinations) {
    for (std::uint64_t seed = 1; seed <= 600; ++seed) {
        expect_solved<double>(queue, random_recipe(seed));
        expect_solved<float>(queue, random_recipe(seed + 100000));
        if (HasFailure()) FAIL() << "seed " << seed;
    }
}

TEST_P(Option, CombinationsOfFewAndLong) {
    for (std::uint64_t seed = 1; seed <= 80; ++seed) {
        expect_solved<double>(queue, random_recipe(seed, true));
        expect_solved<float>(queue, random_recipe(seed + 100000, true));
        if (HasFailure()) FAIL() << "seed " << seed;
    }
}

TRIFOLD_ON_EVERY_DEVICE(Option);

}  // namespace
}  // namespace trifold::tests
