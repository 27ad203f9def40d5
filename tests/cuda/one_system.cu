// SPDX-License-Identifier: BSD-3-Clause
// One system that a block holds: every number of warps and rows at their edges, arrays off 16 bytes, pivots, in place.
#include "cuda/long_system.hpp"

namespace trifold::tests {
namespace {

using OneSystem = LongSystem;

template <class T>
System<T> made(std::size_t n, int kind, std::mt19937_64& random) {
    if (kind == 0) return random_system<T>(n, 3, random);
    std::uniform_real_distribution<double> any(-1, 1);
    System<T> s(n);
    for (std::size_t i = 0; i < n; ++i) s.lower[i] = s.upper[i] = -1, s.diag[i] = 2, s.rhs[i] = static_cast<T>(any(random));
    if (kind == 2) s.diag[n / 18 * 9] = 0;  // where a lane begins
    return s;
}

TEST_F(OneSystem, AnyLengthAnywhere) {
    std::mt19937_64 random(31);
    const auto check = [&]<class T>(T) {
        for (const std::size_t n : {512, 575, 576, 577, 583, 863, 865, 2000, 4096, 4319, 4321, 4607, 4608, 4609})
            for (const int kind : {0, 1, 2})
                for (const int off : {0, 1, 3}) {
                    SCOPED_TRACE(testing::Message() << n << " rows, kind " << kind << ", off " << off << (sizeof(T) == 8 ? ", f64" : ", f32"));
                    const auto system = made<T>(n, kind, random);
                    std::vector<T> x;
                    const Outcome outcome = solve_there(system, x, off, off == 1);
                    expect_good(system, x, outcome);
                    if (n <= 4608) {
                        EXPECT_EQ(outcome.rescued, kind == 2 ? 1 : 0);
                    }
                    if (HasFatalFailure()) return;
                }
    };
    check(double());
    check(float());
}

// More rows than a block holds: a cluster's two pivoted passes, at the edges of their chunks, tiles and levels.
TEST_F(OneSystem, PivotsOfManyRows) {
    std::mt19937_64 random(33);
    std::uniform_real_distribution<double> any(-1, 1);
    const auto check = [&]<class T>(T) {
        for (const std::size_t n : {4609, 4640, 4641, 4671, 8191, 12289, 16384, 16385, 25600})
            for (const bool waves : {false, true}) {
                auto system = made<T>(n, 1, random);
                for (std::size_t i = 0; i < n; ++i) {
                    if (!waves) system.lower[i] = static_cast<T>(any(random)), system.upper[i] = static_cast<T>(any(random));
                    system.diag[i] = static_cast<T>(waves ? 0.6 : any(random));
                }
                for (const int off : {0, 1}) {
                    SCOPED_TRACE(testing::Message() << n << " rows, " << (waves ? "waves" : "random") << ", off " << off << (sizeof(T) == 8 ? ", f64" : ", f32"));
                    std::vector<T> x, again;
                    const Outcome outcome = solve_there(system, x, off, off == 1);
                    expect_good(system, x, outcome);
                    if (!waves) {  // these may do without
                        EXPECT_TRUE(outcome.tried_other);
                        EXPECT_STREQ(outcome.branch, "two_pass");
                    }
                    solve_there(system, again, off, off == 1);
                    EXPECT_EQ(x, again);
                    if (HasFatalFailure()) return;
                }
            }
    };
    check(double());
    check(float());
}

TEST_F(OneSystem, ASingularOneKeepsItsRightHandSide) {
    std::mt19937_64 random(32);
    for (const std::size_t n : {3001, 16384}) {
        auto system = made<double>(n, 0, random);
        system.lower[1500] = system.diag[1500] = system.upper[1500] = 0;
        std::vector<double> x;
        const Outcome outcome = solve_there(system, x, 0, true);
        EXPECT_EQ(outcome.reason, Reason::singular);
        EXPECT_EQ(outcome.failures, 1);
        EXPECT_EQ(x, system.rhs);
        system.diag[1500] = std::numeric_limits<double>::quiet_NaN();
        const Outcome other = solve_there(system, x);
        EXPECT_EQ(other.reason, Reason::not_finite);
        EXPECT_EQ(other.row, 1500);
    }
}

}  // namespace
}  // namespace trifold::tests
