// SPDX-License-Identifier: BSD-3-Clause
// The certified pass on the GPU: its bound against the true error, what it must hand over, and what it leaves in place.
#include "cuda/long_system.hpp"

namespace trifold::tests {
namespace {

using Certified = LongSystem;

TEST_F(Certified, BoundsTheTrueError) {
    std::mt19937_64 random(7);
    int bounded = 0;
    for (int draw = 0; draw < 60; ++draw) {
        const double dominance = draw % 3 == 0 ? 1.02 : draw % 3 == 1 ? 1.5 : 4;
        const std::size_t n = 102401 + random() % 60000;  // fewer are a cluster's
        SCOPED_TRACE("draw " + std::to_string(draw));
        std::vector<double> x;
        auto wide = random_system<double>(n, dominance, random);
        Outcome outcome = solve(wide, x, Algorithm::automatic);
        expect_good(wide, x, outcome);
        bounded += std::isfinite(outcome.certificate);
        std::vector<float> y;
        auto narrow = random_system<float>(n, dominance, random);
        outcome = solve(narrow, y, Algorithm::automatic);
        expect_good(narrow, y, outcome);
        bounded += std::isfinite(outcome.certificate);
        if (HasFatalFailure()) return;
    }
    EXPECT_GE(bounded, 30);
}

TEST_F(Certified, CoversLongDominantSystems) {
    std::mt19937_64 random(8);
    for (const std::size_t n : {std::size_t{20011}, std::size_t{100003}, (std::size_t{1} << 20) - 1, std::size_t{1} << 20, (std::size_t{1} << 20) + 1}) {
        SCOPED_TRACE(n);
        auto system = random_system<double>(n, 3, random);
        std::vector<double> x, again;
        const Outcome outcome = solve(system, x, Algorithm::certified);
        expect_good(system, x, outcome);
        EXPECT_EQ(outcome.reason, Reason::certified);
        EXPECT_EQ(outcome.certified_share, 1);
        EXPECT_STREQ(outcome.branch, "certified");
        solve(system, again, Algorithm::certified);
        EXPECT_EQ(x, again);
    }
}

// A source in the midst of zeros; then |x| larger by 10^12 just beyond where windows may end, all around.
TEST_F(Certified, SeesWhatIsFarLargerBesideIt) {
    const std::size_t n = 140000;
    for (std::size_t place = 2000; place < 2300; place += 11) {
        SCOPED_TRACE(place);
        System<double> system(n);
        for (std::size_t i = 0; i < n; ++i) system.lower[i] = system.upper[i] = -1, system.diag[i] = 2.5, system.rhs[i] = 1e-12;
        for (std::size_t i = place; i < place + 300; ++i) system.rhs[i] = 1;
        std::vector<double> x;
        const Outcome outcome = solve(system, x, Algorithm::automatic);
        expect_good(system, x, outcome);
    }
}

TEST_F(Certified, PutsTheRightHandSideBack) {
    std::mt19937_64 random(9);
    const std::size_t n = 2600000;
    auto system = random_system<double>(n, 3, random);
    // A stretch that does not forget, late enough that windows have been stored.
    for (std::size_t i = 600000; i < 700000; ++i) system.lower[i] = system.upper[i] = -1, system.diag[i] = 2.0000001;
    for (const Algorithm algorithm : {Algorithm::certified, Algorithm::automatic}) {
        SCOPED_TRACE(tridiagonal::name_of(algorithm));
        std::vector<double> x = system.rhs;
        auto problem = system.problem(x);
        problem.rhs = View<double>::rows(x);
        tridiagonal::Options options;
        options.algorithm = algorithm;
        const Outcome outcome = tridiagonal::solve(*queue, problem, options);
        if (algorithm == Algorithm::automatic) {
            expect_good(system, x, outcome);
            EXPECT_TRUE(outcome.tried_other);
            EXPECT_EQ(outcome.certified_share, 0);
        } else {
            EXPECT_EQ(outcome.reason, Reason::not_certified);
        }
    }
}

TEST_F(Certified, LeavesWhatItCannotShow) {
    std::mt19937_64 random(10);
    const std::size_t n = 150000;
    auto system = random_system<double>(n, 3, random);
    std::vector<double> x;
    const double kept = system.diag[30000];
    for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
        system.rhs[30000] = bad;
        EXPECT_EQ(solve(system, x, Algorithm::automatic).reason, Reason::not_finite);
        EXPECT_EQ(solve(system, x, Algorithm::certified).reason, Reason::not_certified);
    }
    system.rhs[30000] = 1;
    system.lower[30000] = system.diag[30000] = system.upper[30000] = 0;
    const Outcome outcome = solve(system, x, Algorithm::automatic);
    EXPECT_EQ(outcome.reason, Reason::singular);
    system.diag[30000] = kept;
    const Outcome mended = solve(system, x, Algorithm::automatic);
    expect_good(system, x, mended);
}

}  // namespace
}  // namespace trifold::tests
