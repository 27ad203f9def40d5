// SPDX-License-Identifier: BSD-3-Clause
// Systems that forget within a few hundred rows: windows with wide halos, what they leave to coupled ones, and their edges.
#include "cuda/long_system.hpp"

namespace trifold::tests {
namespace {

using WideHalos = LongSystem;

/// One implicit step of diffusion through layers of eight rows, unlike by up to 10^4.
template <class T>
System<T> layered(std::size_t n, double number, std::mt19937_64& random) {
    std::uniform_real_distribution<double> any(0, 1);
    System<T> s(n);
    double before = 0, here = 0, after = number * std::pow(10, 4 * any(random) - 2);
    for (std::size_t i = 0; i < n; ++i) {
        if (i % 8 == 0) before = here, here = after, after = number * std::pow(10, 4 * any(random) - 2);
        const auto face = [&](double other) { return 2 * here * other / (here + other); };
        const double up = i % 8 ? here : i ? face(before) : 2 * here, down = i % 8 < 7 ? here : face(after);
        s.lower[i] = static_cast<T>(-up), s.upper[i] = static_cast<T>(-down), s.diag[i] = static_cast<T>(1 + up + down), s.rhs[i] = static_cast<T>(any(random));
    }
    return s;
}

/// From so many rows on they are tried (src/backends/cuda/tridiagonal/device/windows.cu); on the device, since so many from the host go through it in pieces.
template <class T>
constexpr std::size_t some = sizeof(T) == 8 ? 1 << 22 : 1 << 24;

TEST_F(WideHalos, ThatForgetTakeOnePass) {
    std::mt19937_64 random(41);
    const auto check = [&]<class T>(T) {
        for (const double number : {0.1, 1.0, 10.0, 100.0})
            for (const std::size_t more : {0, 1, 3}) {
                if (number != 1.0 && more > 0) continue;
                if (sizeof(T) == 4 && (more == 1 || number == 0.1 || number == 10)) continue;  // an exact solution takes seconds
                SCOPED_TRACE(testing::Message() << number << " " << more);
                const auto system = layered<T>(some<T> + more, number, random);
                std::vector<T> x, again;
                const Outcome outcome = solve_there(system, x);
                expect_good(system, x, outcome);
                EXPECT_STREQ(outcome.branch, "certified");
                if (sizeof(T) == 8 || number <= 1) EXPECT_EQ(outcome.reason, Reason::certified);
                solve_there(system, again, 0, false, Algorithm::certified);
                EXPECT_EQ(x, again);
                if (HasFatalFailure()) return;
            }
    };
    check(double());
    check(float());
}

// Rows that are not dominant, a pivot that vanishes, a stretch that does not forget, late enough that others have been stored.
TEST_F(WideHalos, LeaveTheRestToCoupledWindows) {
    std::mt19937_64 random(42);
    const auto check = [&]<class T>(T) {
        for (const int kind : {0, 1, 2, 3})
            for (const std::size_t place : {std::size_t{5000}, some<T> - 700}) {
                if (sizeof(T) == 4 && (kind != 2 || place == 5000)) continue;
                SCOPED_TRACE(testing::Message() << kind << " " << place);
                auto system = layered<T>(some<T>, 1, random);
                if (kind == 0) system.diag[place] *= T(0.9);
                if (kind == 1) system.diag[place] = 0;
                for (std::size_t i = place; i < place + 600; ++i) {
                    if (kind == 2) system.lower[i] = system.upper[i] = -1, system.diag[i] = T(2 + 1e-6);
                    if (kind == 3) system.lower[i] = system.upper[i] = -1, system.diag[i] = 2;
                }
                std::vector<T> x, again;
                expect_good(system, x, solve_there(system, x));
                solve_there(system, again);
                EXPECT_EQ(x, again);
                if (HasFatalFailure()) return;
            }
    };
    check(double());
    check(float());
}

// |x| larger by 10^12 just beyond where windows may end; the same by a row that nearly vanishes.
TEST_F(WideHalos, SeeWhatIsFarLargerBesideThem) {
    std::mt19937_64 random(43);
    for (std::size_t place = 400000; place < 403200; place += 617) {
        SCOPED_TRACE(place);
        auto system = layered<double>(some<double>, 1, random);
        for (double& f : system.rhs) f *= 1e-12;
        for (std::size_t i = place; i < place + 300; ++i) system.rhs[i] = 1;
        std::vector<double> x;
        expect_good(system, x, solve_there(system, x));
        if (HasFatalFailure()) return;
    }
}

TEST_F(WideHalos, SayWhatIsWrong) {
    std::mt19937_64 random(44);
    for (const std::size_t place : {std::size_t{3}, std::size_t{700001}, some<double> - 2}) {
        SCOPED_TRACE(place);
        auto system = layered<double>(some<double>, 1, random);
        std::vector<double> x;
        system.rhs[place] = std::numeric_limits<double>::infinity();
        EXPECT_EQ(solve_there(system, x).reason, Reason::not_finite);
        EXPECT_EQ(solve_there(system, x, 0, false, Algorithm::certified).reason, Reason::not_certified);
        system.rhs[place] = 1;
        system.lower[place] = system.diag[place] = system.upper[place] = 0;
        EXPECT_EQ(solve_there(system, x).reason, Reason::singular);
    }
}

}  // namespace
}  // namespace trifold::tests
