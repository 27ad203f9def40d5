// SPDX-License-Identifier: BSD-3-Clause
// One system that all multiprocessors hold: lanes, warps and blocks at their edges, arrays off 16 bytes, with gaps and as numbers, in place, what it hands over; and one row more than it takes.
#include "cuda/long_system.hpp"

namespace trifold::tests {
namespace {

/// As src/backends/cuda/tridiagonal/device/held_job.cuh has them.
constexpr std::size_t lanes_of_block = 15 * 32;
template <class T>
constexpr std::size_t rows_of_lane() { return sizeof(T) == 8 ? 17 : 35; }

class Held : public LongSystem {
protected:
    template <class T>
    static std::size_t most() {
        int multiprocessors = 0;
        cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0);
        return static_cast<std::size_t>(std::min(multiprocessors, 160)) * lanes_of_block * rows_of_lane<T>();
    }

    static bool held(const Outcome& outcome) { return outcome.branch == std::string("thomas") || outcome.reason == Reason::certified; }
};

enum Kind { dominant, weak, poisson, waves, vanishing };
constexpr const char* kinds[] = {"dominant", "weakly dominant", "-1, 2, -1", "waves", "a pivot that vanishes"};

template <class T>
System<T> made(std::size_t n, Kind kind, std::mt19937_64& random) {
    if (kind == dominant) return random_system<T>(n, 3, random);
    std::uniform_real_distribution<double> any(-1, 1), scale(-3, 3);
    System<T> s(n);
    for (std::size_t i = 0; i < n; ++i) s.lower[i] = s.upper[i] = -1, s.diag[i] = static_cast<T>(kind == waves ? 0.7 : 2), s.rhs[i] = static_cast<T>(any(random));
    if (kind == vanishing) s.diag[n / 90 * 45] = 0;
    if (kind != weak) return s;
    T before = 1;  // layers: rows sum to next to nothing
    for (std::size_t i = 0; i < n; ++i) {
        const auto after = static_cast<T>(std::exp(scale(random)));
        s.lower[i] = -before, s.upper[i] = -after, s.diag[i] = before + after + static_cast<T>(i % 1000 == 0 ? 1 : 0), before = after;
    }
    return s;
}

TEST_F(Held, AnyLengthAnywhere) {
    std::mt19937_64 random(41);
    const auto check = [&]<class T>(T) {
        for (const std::size_t n : {102401, 110003, 131072, 190081, 262145, 524287})
            for (const Kind kind : {dominant, weak, poisson, waves, vanishing})
                for (const int off : {0, 1, 3}) {
                    SCOPED_TRACE(testing::Message() << n << " rows, " << kinds[kind] << ", off " << off << (sizeof(T) == 8 ? ", f64" : ", f32"));
                    const auto system = made<T>(n, kind, random);
                    std::vector<T> x, again;
                    const Outcome outcome = solve_there(system, x, off, off == 1);
                    expect_good(system, x, outcome);
                    if (kind < waves && n <= most<T>()) EXPECT_TRUE(held(outcome)) << outcome.branch;
                    if (kind == dominant && n <= most<T>()) EXPECT_EQ(outcome.reason, Reason::certified);
                    solve_there(system, again, off, off == 1);
                    EXPECT_EQ(x, again);
                    if (HasFatalFailure()) return;
                }
    };
    check(double());
    check(float());
}

TEST_F(Held, AsManyRowsAsThereIsRoomFor) {
    std::mt19937_64 random(42);
    const auto check = [&]<class T>(T) {
        for (const std::size_t n : {most<T>() / rows_of_lane<T>() * 13 - 7, most<T>() - lanes_of_block * rows_of_lane<T>(), most<T>() - 1, most<T>(), most<T>() + 1})
            for (const Kind kind : {dominant, poisson})
                for (const bool in_place : {false, true}) {
                    SCOPED_TRACE(testing::Message() << n << " rows, " << kinds[kind] << (in_place ? ", in place" : "") << (sizeof(T) == 8 ? ", f64" : ", f32"));
                    const auto system = made<T>(n, kind, random);
                    std::vector<T> x;
                    const Outcome outcome = solve_there(system, x, 0, in_place);
                    if (kind == poisson && sizeof(T) == 4) {  // so long that single precision has no digits of x: but its rows hold
                        ASSERT_TRUE(outcome.ok());
                        expect_small_residual(system, x, std::abs(*std::ranges::max_element(x, {}, [](T v) { return std::abs(v); })));
                    } else {
                        expect_good(system, x, outcome);
                    }
                    if (kind == poisson) EXPECT_EQ(held(outcome), n <= most<T>()) << outcome.branch;
                    if (HasFatalFailure()) return;
                }
    };
    check(double());
    check(float());
}

TEST_F(Held, NumbersAndGaps) {
    std::mt19937_64 random(43);
    const auto check = [&]<class T>(T) {
        constexpr std::size_t n = 150001;
        auto system = made<T>(n, poisson, random);
        std::vector<T> x(n), of_arrays;
        tridiagonal::Problem problem = system.problem(x);
        problem.matrix = {-1.0, 2.0, -1.0};
        const Outcome outcome = tridiagonal::solve(*queue, problem, {});
        EXPECT_TRUE(held(outcome)) << outcome.branch;
        solve_there(system, of_arrays);
        EXPECT_EQ(x, of_arrays);
        for (const bool in_place : {false, true}) {
            std::vector<T> apart;
            EXPECT_TRUE(held(solve_there(system, apart, 1, in_place, Algorithm::automatic, 3)));
            EXPECT_EQ(apart, of_arrays);
        }
    };
    check(double());
    check(float());
}

}  // namespace
}  // namespace trifold::tests
