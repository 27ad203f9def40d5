// SPDX-License-Identifier: BSD-3-Clause
// Algorithms by name: the named one runs, and what it cannot do it says.
#include "contract/tridiagonal/devices.hpp"
#include "contract/tridiagonal/trial.hpp"
#include "support/measure.hpp"
#include "support/run.hpp"
#include "support/zoo.hpp"

namespace trifold::tests {
namespace {

using tridiagonal::Algorithm;

class ByName : public OnDevice {};

TEST_P(ByName, SolvesDominantSystems) {
    for (int a = 1; a < tridiagonal::algorithm_count; ++a) {
        const auto algorithm = static_cast<Algorithm>(a);
        for (const std::int64_t rows : {1, 2, 3, 17, 100, 1000, 4099, 100003})
            for (const std::vector<std::int64_t>& batch : {std::vector<std::int64_t>{}, {9}}) {
                if (rows > 5000 && !batch.empty()) continue;
                for (const bool periodic : {false, true}) {
                    Recipe recipe;
                    recipe.rows = rows;
                    recipe.batch = batch;
                    recipe.periodic = periodic;
                    SCOPED_TRACE(std::string(tridiagonal::name_of(algorithm)) + ": " + recipe.text());
                    Trial<double> trial(recipe);
                    tridiagonal::Options options;
                    options.algorithm = algorithm;
                    Outcome outcome;
                    try {
                        outcome = tridiagonal::solve(queue, trial.problem(), options);
                    } catch (const Error& refusal) {
                        // Only what is coupled from chunks may be unable to take a problem, and it must say why.
                        EXPECT_TRUE(algorithm == Algorithm::certified || algorithm == Algorithm::two_pass) << refusal.what();
                        EXPECT_EQ(refusal.code(), ErrorCode::usage);
                        EXPECT_TRUE(trial.surroundings_untouched());
                        continue;
                    }
                    // The two that are coupled from chunks hand short or hard systems over, and say so.
                    if (outcome.tried_other) { EXPECT_TRUE(algorithm == Algorithm::certified || algorithm == Algorithm::two_pass); }
                    else { EXPECT_STREQ(outcome.branch, tridiagonal::name_of(algorithm)); }
                    trial.expect_solved(outcome);
                }
            }
    }
}

TEST_P(ByName, NoneIsSilentlyWrong) {
    for (int a = 1; a < tridiagonal::algorithm_count; ++a) {
        tridiagonal::Options options;
        options.algorithm = static_cast<Algorithm>(a);
        for (const ZooEntry& entry : zoo()) {
            if (entry.dense) continue;
            for (const std::int64_t rows : {64, 513, 4099}) {
                SCOPED_TRACE(testing::Message() << tridiagonal::name_of(options.algorithm) << " on " << entry.name << ", " << rows << " rows");
                const Bands<double> s = make(entry, rows, 17);
                std::vector<double> x(s.rhs.size(), 77);
                Outcome outcome;
                std::string error;
                if (!tridiagonal::try_solve(queue, problem_of(s, x), options, outcome, error)) {
                    EXPECT_FALSE(error.empty());
                    continue;
                }
                if (!outcome.ok()) continue;
                EXPECT_TRUE(all_finite(x));
                EXPECT_LE(backward_error(s, x), 2e3 * 0x1p-53);
            }
        }
    }
}

TRIFOLD_ON_EVERY_DEVICE(ByName);

}  // namespace
}  // namespace trifold::tests
