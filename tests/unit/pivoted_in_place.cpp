// SPDX-License-Identifier: BSD-3-Clause
// The cpu's pivoted sweep where x is rhs: the same bits as beside it, and after a failure the right-hand side bit for bit.
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include "backends/cpu/tridiagonal/pivoted.hpp"
#include "unit/two_pass.hpp"

namespace trifold::tests {
namespace {

using tridiagonal::Launch;
using tridiagonal::System;

constexpr std::int64_t enough = (std::int64_t{1} << 19) + 13;

struct Swept {
    bool answered;
    std::size_t scratch;
};

/// Sweeps `x`, which holds rhs where in_place.
template <class T>
Swept sweep(const Bands<T>& s, std::vector<T>& x, bool in_place, int threads = 1, std::size_t less = 0) {
    tridiagonal::Problem problem = problem_of(s, x);
    if (in_place) problem.rhs = problem.x;
    const System system = tridiagonal::normalise(problem);
    EXPECT_EQ(system.in_place, in_place);
    const std::size_t bytes = cpu::pivoted_scratch(system, threads);
    const Scratch64 scratch(bytes);
    Launch launch;
    launch.threads = threads;
    launch.scratch = scratch.data;
    launch.scratch_bytes = bytes - less;
    return {cpu::sweep_pivoted(system, launch), bytes};
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// In place and beside: both answer with the same x, or none and rhs is what it was.
template <class T>
bool agrees(const Bands<T>& s, int threads) {
    std::vector<T> beside(s.rhs.size(), T{77}), within = s.rhs;
    const bool answered = sweep(s, beside, false).answered;
    const bool answered_in_place = sweep(s, within, true, threads).answered;
    if (answered_in_place) {
        EXPECT_LE(backward_error(cast<double>(s), as_double(within)), 10 * unit_roundoff(dtype_of<T>));
    } else {
        EXPECT_TRUE(same_bits(within, s.rhs)) << "rhs was not put back";
    }
    // The cut depends on the alignment of x.
    const auto line = [](const std::vector<T>& x) { return reinterpret_cast<std::uintptr_t>(x.data()) % 64; };
    if (line(beside) == line(within)) {
        EXPECT_EQ(answered, answered_in_place);
        if (answered && answered_in_place) { EXPECT_TRUE(same_bits(beside, within)); }
    }
    return answered_in_place;
}

TEST(PivotedInPlace, IsTheSameAsBeside) {
    on_every_target([] {
        for (const std::int64_t rows : {enough, enough + 4321, 2 * enough - 1})
            for (const int threads : {1, 3}) {
                const Bands<double> s = random_system(rows, 0, 41);
                EXPECT_TRUE(agrees(s, threads)) << rows;
                EXPECT_TRUE(agrees(cast<float>(s), threads)) << rows;
            }
    });
}

TEST(PivotedInPlace, LongerBlocks) {
    on_every_target([] {
        for (const double diag : {2.1, 2.01}) {
            Bands<double> s = random_system(enough, 0, 42);
            for (std::int64_t i = 0; i < enough; ++i) s.lower[i] = s.upper[i] = -1, s.diag[i] = diag;
            EXPECT_TRUE(agrees(s, 2)) << diag;
        }
    });
}

TEST(PivotedInPlace, WithoutScratchNothingIsTouched) {
    const Bands<double> s = random_system(enough, 0, 43);
    std::vector<double> x = s.rhs;
    const std::size_t bytes = sweep(s, x, true).scratch;
    EXPECT_FALSE(same_bits(x, s.rhs));
    EXPECT_GE(bytes, sizeof(double) * enough);
    EXPECT_LE(bytes, sizeof(double) * enough * 2);
    x = s.rhs;
    EXPECT_FALSE(sweep(s, x, true, 1, bytes / 2).answered);
    EXPECT_TRUE(same_bits(x, s.rhs));
}

TEST(PivotedInPlace, WithTheLeastScratchTwoPassesSolve) {
    const Bands<double> s = random_system(enough, 0, 45);
    std::vector<double> x = s.rhs;
    tridiagonal::Problem problem = problem_of(s, x);
    problem.rhs = problem.x;
    const System system = tridiagonal::normalise(problem);
    const std::size_t wanted = tridiagonal::two_pass_workspace(cpu::cpu_ops(), system, 2);
    for (const std::size_t bytes : {wanted, tridiagonal::two_pass_least_workspace(cpu::cpu_ops(), system, 2)}) {
        x = s.rhs;
        const Scratch64 scratch(bytes);
        Launch launch;
        launch.threads = 2, launch.scratch = scratch.data, launch.scratch_bytes = bytes;
        const Outcome outcome = tridiagonal::solve_two_pass(cpu::cpu_ops(), system, launch);
        EXPECT_EQ(outcome.reason, Reason::exact);
        EXPECT_EQ(outcome.residual != outcome.residual, bytes == wanted) << "one pass computes none";
        EXPECT_LE(backward_error(s, x), 10 * 0x1p-53);
    }
}

template <class T>
void touches_nothing_outside(bool at_start) {
    const Bands<T> s = cast<T>(random_system(enough, 0, 44));
    const Fenced<T> lower({s.lower.begin() + 1, s.lower.end()}, at_start), upper({s.upper.begin(), s.upper.end() - 1}, at_start);
    const Fenced<T> diag(s.diag, at_start), x(s.rhs, at_start);
    std::vector<T> unused(s.rhs.size());
    System system = tridiagonal::normalise(problem_of(s, unused));
    system.lower.data = lower.data - 1, system.upper.data = upper.data, system.diag.data = diag.data;
    system.rhs.data = system.x.data = x.data, system.in_place = true;
    const std::size_t bytes = (cpu::pivoted_scratch(system, 1) + 63) / 64 * 64;
    const Fenced<std::byte> scratch(std::vector<std::byte>(bytes), at_start);
    Launch launch;
    launch.scratch = scratch.data, launch.scratch_bytes = bytes;
    ASSERT_TRUE(cpu::sweep_pivoted(system, launch));
    EXPECT_LE(backward_error(cast<double>(s), {x.data, x.data + enough}), 10 * unit_roundoff(dtype_of<T>));
}

TEST(PivotedInPlace, TouchesNothingOutsideTheArraysAndItsScratch) {
    on_every_target([] {
        for (const bool at_start : {false, true}) touches_nothing_outside<double>(at_start), touches_nothing_outside<float>(at_start);
    });
}

/// A random system that is spoilt somewhere: what is not forgotten, what is singular, what is not finite, what grows.
template <class T>
Bands<T> spoilt(std::mt19937_64& random, std::int64_t rows) {
    const auto below = [&](std::int64_t most) { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most)); };
    Bands<T> s = cast<T>(random_system(rows, below(3) * 0.5, random()));
    const int times = 1 + static_cast<int>(below(3));
    for (int k = 0; k < times; ++k) {
        const std::int64_t row = below(4) == 0 ? (below(2) ? below(300) : rows - 1 - below(300)) : below(rows);
        const std::int64_t last = std::min(rows, row + 1 + below(below(2) ? 200000 : 3000));
        constexpr T bad[] = {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(), std::numeric_limits<T>::max(), std::numeric_limits<T>::denorm_min()};
        switch (below(8)) {
            case 0:
                for (std::int64_t i = row; i < last; ++i) s.lower[i] = s.upper[i] = -1, s.diag[i] = 2;
                break;
            case 1:  // waves
                for (std::int64_t i = row; i < last; ++i) s.lower[i] = s.upper[i] = 1, s.diag[i] = T(0.5);
                break;
            case 2:
                s.diag[row] = 0;
                if (row > 0) s.upper[row - 1] = 0;
                if (row + 1 < rows) s.lower[row + 1] = 0;
                break;
            case 3: s.rhs[row] = bad[below(4)]; break;
            case 4: (below(2) ? s.diag : row > 0 && row + 1 < rows && below(2) ? s.lower : s.diag)[row] = bad[below(4)]; break;
            case 5:  // x grows by magnitudes
                for (std::int64_t i = row; i < last; ++i) s.diag[i] *= std::exp2(-T(20) * T(i - row) / T(last - row));
                break;
            case 6:
                for (std::int64_t i = row; i < last; ++i) s.rhs[i] = 0;
                break;
            default:  // decoupled, or graded
                for (std::int64_t i = row; i < last; ++i) s.lower[i] *= T(1e-12), s.rhs[i] *= T(1e12);
        }
    }
    return s;
}

template <class T>
void fuzz(std::uint64_t seed, int count) {
    std::mt19937_64 random(seed);
    int answered = 0;
    for (int k = 0; k < count; ++k) {
        const std::int64_t rows = (std::int64_t{1} << 19) + static_cast<std::int64_t>(random() % (k % 3 == 0 ? 1000000 : 40000));
        const Bands<T> s = spoilt<T>(random, rows);
        SCOPED_TRACE(testing::Message() << "seed " << seed << ", draw " << k << ", " << rows << " rows");
        answered += agrees(s, 1 + k % 3);
        // The whole driver, where nothing may be wrong either.
        const Solved<T> solved = two_pass(cpu::cpu_ops(), s, tridiagonal::two_pass_chunk_rows(rows, dtype_of<T>), 1 + k % 2, true);
        if (!solved.outcome.ok()) continue;
        const Gtsv<T> peer = gtsv(s);
        if (peer.info != 0 || !all_finite(as_double(peer.x)) || !all_finite(as_double(s.rhs))) continue;
        const double u = unit_roundoff(dtype_of<T>), allowed = 14 * u + 10 * std::max(u, backward_error(cast<double>(s), as_double(peer.x)));
        EXPECT_LE(backward_error(cast<double>(s), as_double(solved.x)), allowed) << solved.outcome.branch;
    }
    EXPECT_GT(answered, 0);
    EXPECT_LT(answered, count);
}

TEST(PivotedInPlace, WhateverItMeetsNothingIsLost) {
    // More draws: TRIFOLD_FUZZ_DRAWS.
    const char* const more = std::getenv("TRIFOLD_FUZZ_DRAWS");
    const int draws = more ? std::atoi(more) : 12;
    fuzz<double>(51, draws);
    fuzz<float>(52, draws);
}

}  // namespace
}  // namespace trifold::tests
