// SPDX-License-Identifier: BSD-3-Clause
// One system that a cluster holds: every number of warps and rows at their edges, arrays off 16 bytes, pivots, in place.
#include <string_view>

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
        for (const std::size_t n : {512, 575, 576, 577, 583, 863, 865, 2000, 4096, 4319, 4321, 4607, 4608, 4609, 8191, 8192, 8193, 12001, 16384, 16385, 20000, 30727, 32767, 32768, 32769, 40001, 53248, 53249, 65536, 102399, 102400, 102401})
            for (const int kind : {0, 1, 2})
                for (const int off : {0, 1, 3}) {
                    SCOPED_TRACE(testing::Message() << n << " rows, kind " << kind << ", off " << off << (sizeof(T) == 8 ? ", f64" : ", f32"));
                    const auto system = made<T>(n, kind, random);
                    std::vector<T> x;
                    const Outcome outcome = solve_there(system, x, off, off == 1);
                    expect_good(system, x, outcome);
                    if (n <= 102400) {
                        EXPECT_EQ(outcome.rescued, kind == 2 ? 1 : 0);
                    }
                    if (HasFatalFailure()) return;
                }
    };
    check(double());
    check(float());
}

// More rows than a block holds, and gaps between them: a cluster's two pivoted passes, at the edges of their chunks, tiles and levels.
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
                    const Outcome outcome = solve_there(system, x, off, off == 1, Algorithm::automatic, 2);
                    expect_good(system, x, outcome);
                    if (!waves) {  // these may do without
                        EXPECT_TRUE(outcome.tried_other);
                        EXPECT_STREQ(outcome.branch, "two_pass");
                    }
                    solve_there(system, again, off, off == 1, Algorithm::automatic, 2);
                    EXPECT_EQ(x, again);
                    if (HasFatalFailure()) return;
                }
            }
    };
    check(double());
    check(float());
}

template <class T>
T largest_of(const std::vector<T>& x) {
    return std::abs(*std::max_element(x.begin(), x.end(), [](T a, T b) { return std::abs(a) < std::abs(b); }));
}

/// Rows that sum to nothing, or nearly: -1, 2, -1; layers whose conductances differ by 10^8; neighbours of any sign; stretches that nothing couples.
template <class T>
System<T> hardly_dominant(std::size_t n, int kind, std::mt19937_64& random) {
    std::uniform_real_distribution<double> any(-1, 1);
    System<T> s(n);
    std::vector<T> between(n + 1);
    for (T& k : between) k = static_cast<T>(kind == 1 ? std::pow(1e4, any(random)) : kind == 3 && any(random) < -0.9 ? 0 : 1);
    for (std::size_t i = 0; i < n; ++i) {
        const T left = between[i], right = between[i + 1], sum = left + right;
        s.diag[i] = sum == 0 ? T(1) : sum, s.rhs[i] = static_cast<T>(any(random));
        s.lower[i] = kind == 2 && any(random) < 0 ? left : -left, s.upper[i] = kind == 2 && any(random) < 0 ? right : -right;
    }
    if (kind == 3) s.diag[n / 3] += 1;  // a stretch that nothing couples at all would be singular
    if (kind == 3)
        for (std::size_t i = 0; i < n; ++i)
            if (between[i] == 0 || between[i + 1] == 0) s.diag[i] += 1;
    return s;
}

// Nothing is checked where all rows are dominant, however weakly.
TEST_F(OneSystem, HardlyDominantRows) {
    std::mt19937_64 random(34);
    const auto check = [&]<class T>(T) {
        for (const std::size_t n : {512, 577, 863, 2000, 4095, 4096, 4097, 4608, 8000, 12289, 16385, 32768, 50000, 100000})
            for (const int kind : {0, 1, 2, 3})
                for (const int off : {0, 1}) {
                    SCOPED_TRACE(testing::Message() << n << " rows, kind " << kind << ", off " << off << (sizeof(T) == 8 ? ", f64" : ", f32"));
                    const auto system = hardly_dominant<T>(n, kind, random);
                    std::vector<T> x;
                    const Outcome outcome = solve_there(system, x, off, off == 1);
                    if (kind == 1) {  // too ill-conditioned for floats: x may be large, and pivots wanted
                        ASSERT_TRUE(outcome.ok()) << name_of(outcome.reason);
                        expect_small_residual(system, x, largest_of(x));
                        continue;
                    }
                    expect_good(system, x, outcome);
                    EXPECT_EQ(outcome.rescued, 0);
                    if (HasFatalFailure()) return;
                }
    };
    check(double());
    check(float());
}

// A stretch of rows that sum to nothing and that nothing else is coupled to: where nothing is checked, the pivot that is nothing has to be seen. By rounding there may be one; then x is large, and good.
TEST_F(OneSystem, SingularStretchesOfHardlyDominantRows) {
    std::mt19937_64 random(35);
    const auto check = [&]<class T>(T) {
        int singular = 0;
        for (const std::size_t n : {600, 2000, 4096, 4608, 8192, 16384, 60000})
            for (const std::size_t first : {std::size_t{0}, std::size_t{256}, n - 64})
                for (const std::size_t rows : {std::size_t{2}, std::size_t{64}, n - first}) {
                    SCOPED_TRACE(testing::Message() << n << " rows, " << rows << " from " << first << (sizeof(T) == 8 ? ", f64" : ", f32"));
                    auto system = made<T>(n, 1, random);
                    for (const std::size_t at : {first, first + rows}) {
                        if (at > 0) system.upper[at - 1] = 0;
                        if (at < n) system.lower[at] = 0;
                    }
                    system.diag[first] = system.diag[first + rows - 1] = 1;
                    std::vector<T> x;
                    const Outcome outcome = solve_there(system, x, 0, true);
                    if (outcome.ok()) {
                        expect_small_residual(system, x, largest_of(x));
                        continue;
                    }
                    ++singular;
                    EXPECT_EQ(outcome.reason, Reason::singular);
                    EXPECT_EQ(outcome.failures, 1);
                    EXPECT_EQ(x, system.rhs);
                }
        EXPECT_GE(singular, 12);
    };
    check(double());
    check(float());
}

// What needs pivots is shared by all blocks, a few rows a lane, and corrected: as good as x can be.
TEST_F(OneSystem, PivotsLoseNothing) {
    std::mt19937_64 random(36);
    std::uniform_real_distribution<double> any(-1, 1);
    const auto check = [&]<class T>(T) {
        for (const std::size_t n : {512, 513, 1031, 4096, 4607, 4609, 8192, 8193, 12289, 16384, 16387, 30011, 32768, 65537, 100003, 131072, 500009})
            for (const bool waves : {false, true}) {
                System<T> system(n);
                for (std::size_t i = 0; i < n; ++i) {
                    system.lower[i] = static_cast<T>(waves ? 1 : any(random)), system.upper[i] = static_cast<T>(waves ? 1 : any(random));
                    system.diag[i] = static_cast<T>(waves ? 1e-6 : any(random)), system.rhs[i] = static_cast<T>(any(random));
                }
                SCOPED_TRACE(testing::Message() << n << " rows, " << (waves ? "waves" : "random") << (sizeof(T) == 8 ? ", f64" : ", f32"));
                std::vector<T> x, again;
                const Outcome outcome = solve_there(system, x);
                ASSERT_TRUE(outcome.ok()) << name_of(outcome.reason);
                if (outcome.rescued == 0 && std::string_view(outcome.branch) != "two_pass") continue;  // it did without
                const auto truth = system.exact();
                const auto other = system.template eliminated<T>();
                double error = 0, of_other = 0, size = 0;
                for (std::size_t i = 0; i < n; ++i) {
                    const auto off = [&](T one) { return static_cast<double>(std::abs(one - truth[i])); };
                    error = std::max(error, off(x[i])), of_other = std::max(of_other, off(other[i])), size = std::max(size, static_cast<double>(std::abs(truth[i])));
                }
                // Of truth itself ten bits more are known than x has, in double precision. Where LAPACK's order leaves few digits, the correction has found six bits more.
                EXPECT_LE(error, std::max(200 * unit_roundoff(sizeof(T) == 8 ? DType::f64 : DType::f32) * size, of_other / 16));
                solve_there(system, again);
                EXPECT_EQ(x, again);
            }
    };
    check(double());
    check(float());
}

TEST_F(OneSystem, ASingularOneKeepsItsRightHandSide) {
    std::mt19937_64 random(32);
    for (const std::size_t n : {3001, 7000, 16384, 20001, 70001}) {
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
