// SPDX-License-Identifier: BSD-3-Clause
// Few long systems: solved one after the other where they decay or need pivots, and at once where the first one does neither.
#include <cmath>

#include "contract/tridiagonal/devices.hpp"
#include "contract/tridiagonal/trial.hpp"
#include "support/measure.hpp"

namespace trifold::tests {
namespace {

enum class Rows { decaying, poisson, waves };

/// A system of a batch has rows of one kind.
struct OfKinds final : Entries {
    std::vector<Rows> kinds;

    explicit OfKinds(std::vector<Rows> all) : kinds(std::move(all)) {}
    double coefficient(int band, std::int64_t, std::int64_t number) const override {
        const Rows kind = kinds[static_cast<std::size_t>(number) % kinds.size()];
        return band != 1 ? -1 : kind == Rows::decaying ? 4 : kind == Rows::poisson ? 2 : 0.7;
    }
    double right(std::int64_t row, std::int64_t system) const override { return std::sin(0.37 * static_cast<double>(row * row % 1009 + system)); }
};

Recipe recipe_of(std::int64_t rows, std::int64_t systems, std::vector<Rows> kinds, bool in_place) {
    Recipe recipe;
    recipe.rows = rows, recipe.batch = {systems}, recipe.in_place = in_place;
    recipe.entries = std::make_shared<OfKinds>(std::move(kinds));
    return recipe;
}

/// Waves are left as LU leaves them.
template <class T>
Outcome solved(Queue& queue, const Recipe& recipe) {
    SCOPED_TRACE(recipe.text());
    const Trial<T> trial(recipe);
    std::vector<std::int8_t> status(static_cast<std::size_t>(trial.systems()), 77);
    tridiagonal::Options options;
    options.status = status.data();
    const Outcome outcome = tridiagonal::solve(queue, trial.problem(), options);
    EXPECT_TRUE(outcome.ok());
    EXPECT_TRUE(trial.surroundings_untouched());
    const double bound = std::max(20.0, std::sqrt(static_cast<double>(recipe.rows)) / 2) * unit_roundoff(dtype_of<T>);
    for (std::int64_t k = 0; k < trial.systems(); ++k) {
        EXPECT_GT(status[static_cast<std::size_t>(k)], 0) << "system " << k;
        EXPECT_LE(backward_error(trial.system(k), trial.solution(k)), bound) << "system " << k << ", " << outcome.branch;
    }
    return outcome;
}

class FewLong : public OnDevice {};

TEST_P(FewLong, WhateverTheFirstOneIs) {
    const std::vector<std::vector<Rows>> orders{{Rows::decaying}, {Rows::poisson}, {Rows::waves}, {Rows::poisson, Rows::decaying, Rows::waves}, {Rows::decaying, Rows::waves, Rows::poisson}};
    for (const auto& [rows, systems] : {std::pair{9000, 13}, {20000, 9}, {5000, 3}})
        for (const std::vector<Rows>& kinds : orders)
            for (const bool in_place : {false, true}) {
                solved<double>(queue, recipe_of(rows, systems, kinds, in_place)), solved<float>(queue, recipe_of(rows, systems, kinds, in_place));
                if (HasFailure()) return;
            }
}

TRIFOLD_ON_EVERY_DEVICE(FewLong);

// On the cpu, by times that are not measured.
TEST(FewLongOnCpu, AtOnceWhereTheFirstNeitherDecaysNorNeedsPivots) {
    Context context({.threads = 1, .profile_path = "none", .log = {}});
    Queue queue(context, "cpu");
    const auto branch_of = [&](std::vector<Rows> kinds) {
        const Recipe recipe = recipe_of(20000, 26, std::move(kinds), false);
        const Trial<double> trial(recipe);
        EXPECT_EQ(tridiagonal::plan(queue, trial.problem()).branch.front(), "certified");
        return std::string(solved<double>(queue, recipe).branch);
    };
    EXPECT_EQ(branch_of({Rows::decaying}), "certified");
    EXPECT_EQ(branch_of({Rows::poisson}), "thomas");
    EXPECT_EQ(branch_of({Rows::waves}), "two_pass");
    EXPECT_EQ(branch_of({Rows::poisson, Rows::waves}), "thomas");
}

TEST(FewLongOnCpu, ThePlanSaysSo) {
    Context context({.threads = 1, .profile_path = "none", .log = {}});
    Queue queue(context, "cpu");
    const Trial<double> trial(recipe_of(20000, 26, {Rows::poisson}, false));
    bool said = false;
    for (const Candidate& candidate : tridiagonal::plan(queue, trial.problem()).candidates) said = said || candidate.why.starts_with("all at once where certified hands over");
    EXPECT_TRUE(said);
}

}  // namespace
}  // namespace trifold::tests
