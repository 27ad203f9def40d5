// SPDX-License-Identifier: BSD-3-Clause
// Long systems that forget within a few dozen rows: windows with halos, their seams and edges, and what they leave to others.
#include "cuda/long_system.hpp"

namespace trifold::tests {
namespace {

using LongHalos = LongSystem;

/// Rows of a window (src/backends/cuda/tridiagonal/device/certified_job.cuh), and of systems of many.
template <class T>
constexpr std::size_t window = sizeof(T) == 8 ? 192 * 11 : 192 * 21;
template <class T>
constexpr std::size_t some = 1200 * window<T>;

// The last window has few rows, or all of them; its halo has, or the one before it.
TEST_F(LongHalos, CoverLongDominantSystems) {
    std::mt19937_64 random(51);
    const auto check = [&]<class T>(T, std::initializer_list<int> further) {
        for (const int more : further) {
            SCOPED_TRACE(more);
            const auto system = random_system<T>(some<T> + static_cast<std::size_t>(more), 3, random);
            std::vector<T> x, again;
            const Outcome outcome = solve_there(system, x);
            expect_good(system, x, outcome);
            EXPECT_EQ(outcome.reason, Reason::certified);
            EXPECT_FALSE(outcome.tried_other);
            solve_there(system, again, 0, false, Algorithm::certified);
            EXPECT_EQ(x, again);
            if (HasFatalFailure()) return;
        }
    };
    check(double(), {0, 1, 3, 10, 11, 43, 45, 89, 2111});
    check(float(), {1, 22, 86});
}

// Rows that are not dominant among others that are.
TEST_F(LongHalos, NeedNoDominantRows) {
    std::mt19937_64 random(52);
    auto system = random_system<double>(some<double>, 4, random);
    for (std::size_t i = 100; i < system.size(); i += 1009) system.diag[i] *= 0.1;
    std::vector<double> x;
    const Outcome outcome = solve_there(system, x);
    expect_good(system, x, outcome);
    EXPECT_FALSE(outcome.tried_other);
}

// A stretch that does not forget, a pivot that vanishes, one that nearly does: at the beginning, late, at the end, across windows' ends.
TEST_F(LongHalos, LeaveTheRestToOthers) {
    std::mt19937_64 random(53);
    for (const int kind : {0, 1, 2})
        for (const std::size_t place : {std::size_t{0}, std::size_t{40}, 700 * window<double> - 20, 700 * window<double> + 264, some<double> - 300}) {
            SCOPED_TRACE(testing::Message() << kind << " " << place);
            auto system = random_system<double>(some<double>, 3, random);
            if (kind == 0)
                for (std::size_t i = place; i < place + 300; ++i) system.lower[i] = system.upper[i] = -1, system.diag[i] = 2 + 1e-7;
            else system.diag[place + 1] = kind == 1 ? 0 : 1e-14;
            std::vector<double> x, again;
            expect_good(system, x, solve_there(system, x));
            solve_there(system, again);
            EXPECT_EQ(x, again);
            if (HasFatalFailure()) return;
        }
}

// |x| larger by 10^12 just beyond where windows and warps end.
TEST_F(LongHalos, SeeWhatIsFarLargerBesideThem) {
    for (std::size_t place = 700 * window<double> - 400; place < 700 * window<double> + 400; place += 123) {
        SCOPED_TRACE(place);
        System<double> system(some<double>);
        for (std::size_t i = 0; i < system.size(); ++i) system.lower[i] = system.upper[i] = -1, system.diag[i] = 4, system.rhs[i] = 1e-12;
        for (std::size_t i = place; i < place + 300; ++i) system.rhs[i] = 1;
        std::vector<double> x;
        expect_good(system, x, solve_there(system, x));
        if (HasFatalFailure()) return;
    }
}

// What is not finite, and memory off 16 bytes, which other windows take.
TEST_F(LongHalos, SayWhatIsWrong) {
    std::mt19937_64 random(54);
    auto system = random_system<double>(some<double> + 7, 3, random);
    std::vector<double> x, there;
    expect_good(system, x, solve_there(system, x, 1));
    for (const std::size_t place : {std::size_t{1}, 900 * window<double> + 9, some<double> + 6}) {
        SCOPED_TRACE(place);
        const double before = system.rhs[place];
        system.rhs[place] = std::numeric_limits<double>::quiet_NaN();
        EXPECT_EQ(solve_there(system, x).reason, Reason::not_finite);
        system.rhs[place] = before;
    }
}

}  // namespace
}  // namespace trifold::tests
