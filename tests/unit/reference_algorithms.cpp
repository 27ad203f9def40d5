// SPDX-License-Identifier: BSD-3-Clause
// Every algorithm of the reference on dominant systems, where each of them is stable, against double-double.
#include <gtest/gtest.h>

#include <cmath>

#include "backends/reference/tridiagonal/ops.hpp"
#include "support/measure.hpp"
#include "support/random_system.hpp"
#include "support/run.hpp"
#include "support/truth.hpp"

namespace trifold::tests {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::reference_ops;

class ReferenceAlgorithm : public testing::TestWithParam<Algorithm> {};

template <class T>
void check(Algorithm algorithm, std::int64_t n, bool periodic, std::uint64_t seed) {
    SCOPED_TRACE(testing::Message() << name_of(dtype_of<T>) << ", " << n << " rows" << (periodic ? ", periodic" : "") << ", seed " << seed);
    const Bands<T> s = cast<T>(random_system(n, 1.5, seed, periodic));
    const Solved<T> result = run(reference_ops(), s, algorithm);
    ASSERT_TRUE(result.outcome.ok()) << name_of(result.outcome.reason) << " at row " << result.outcome.row;
    EXPECT_STREQ(result.outcome.device, "reference");
    EXPECT_EQ(result.outcome.failures, 0);
    EXPECT_EQ(result.outcome.row, -1);
    const Bands<double> exact = cast<double>(s);
    const std::vector<double> x = as_double(result.x);
    constexpr double u = unit_roundoff(dtype_of<T>);
    EXPECT_LE(backward_error(exact, x), 10 * u);
    EXPECT_LE(forward_error(x, true_solution(exact)), 30 * u);
    EXPECT_LE(result.outcome.residual, 20 * u);
}

TEST_P(ReferenceAlgorithm, SolvesEverySize) {
    std::uint64_t seed = 1;
    for (std::int64_t n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 33, 64, 127, 128, 129, 255, 256, 257, 383, 384, 511, 512, 513, 1000, 4099})
        for (const bool periodic : {false, true}) {
            check<double>(GetParam(), n, periodic, seed++);
            check<float>(GetParam(), n, periodic, seed++);
        }
}

TEST_P(ReferenceAlgorithm, RepeatsItsBits) {
    const Bands<double> s = random_system(1000, 1.5, 5, true);
    EXPECT_EQ(run(reference_ops(), s, GetParam()).x, run(reference_ops(), s, GetParam()).x);
}

TEST_P(ReferenceAlgorithm, NamesTheRowThatIsNotFinite) {
    for (const double bad : {NAN, INFINITY, -INFINITY})
        for (auto band : {&Bands<double>::lower, &Bands<double>::diag, &Bands<double>::upper, &Bands<double>::rhs}) {
            Bands<double> s = random_system(300, 2, 3);
            (s.*band)[77] = bad;
            const Solved<double> result = run(reference_ops(), s, GetParam());
            EXPECT_EQ(result.outcome.reason, Reason::not_finite);
            EXPECT_EQ(result.outcome.row, 77);
            EXPECT_EQ(result.x, std::vector<double>(300, 77.0)) << "x of a failed system was touched";
        }
}

TEST_P(ReferenceAlgorithm, DoesNotReadTheUnusedEnds) {
    for (std::int64_t n : {1, 2, 3, 200}) {
        Bands<double> s = random_system(n, 2, 9);
        const std::vector<double> clean = run(reference_ops(), s, GetParam()).x;
        s.lower[0] = s.upper[n - 1] = NAN;
        const Solved<double> result = run(reference_ops(), s, GetParam());
        EXPECT_TRUE(result.outcome.ok());
        EXPECT_EQ(result.x, clean);
    }
}

TEST_P(ReferenceAlgorithm, ZeroRightHandSideGivesZero) {
    Bands<double> s = random_system(500, 2, 4);
    std::fill(s.rhs.begin(), s.rhs.end(), 0.0);
    const Solved<double> result = run(reference_ops(), s, GetParam());
    EXPECT_TRUE(result.outcome.ok());
    EXPECT_EQ(largest(result.x), 0);
}

// What pivoting would have solved may be refused, but never answered wrongly; what is called exact or refined is as good as a pivoted answer.
TEST_P(ReferenceAlgorithm, IsNeverSilentlyWrong) {
    for (const ZooEntry& entry : zoo()) {
        for (std::int64_t n : {63, 64, 400}) {
            for (const bool periodic : {false, true}) {
                SCOPED_TRACE(testing::Message() << entry.name << ", " << n << " rows" << (periodic ? ", periodic" : ""));
                const Bands<double> s = make(entry, n, 11, periodic);
                const Solved<double> result = run(reference_ops(), s, GetParam());
                if (!result.outcome.ok()) continue;
                EXPECT_TRUE(all_finite(result.x));
                const bool named = GetParam() != Algorithm::automatic && GetParam() != Algorithm::lu && result.outcome.reason != Reason::certified;
                EXPECT_LE(backward_error(s, result.x), (named ? 20 : 2e3) * 0x1p-53) << name_of(result.outcome.reason);
            }
        }
    }
}

// Waves: |lower c'| beyond every bound here and there, so that unpivoted elimination loses some digits, and one refinement brings them back.
TEST_P(ReferenceAlgorithm, WhatIsNotGoodIsRefined) {
    int refined = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed)
        for (const bool periodic : {false, true}) {
            Random random(seed);
            Bands<double> s(200, periodic);
            const double diagonal = random.uniform(-1.9, 1.9);
            for (std::int64_t i = 0; i < 200; ++i) s.lower[i] = s.upper[i] = -1, s.diag[i] = diagonal;
            set_rhs(s, random);
            const Solved<double> result = run(reference_ops(), s, GetParam());
            if (!result.outcome.ok()) continue;
            const bool folded = periodic && (GetParam() == Algorithm::automatic || GetParam() == Algorithm::lu);  // refines itself
            refined += !folded && result.outcome.reason == Reason::refined;
            EXPECT_EQ(result.outcome.rescued, result.outcome.reason == Reason::refined);
            EXPECT_LE(backward_error(s, result.x), 20 * 0x1p-53) << name_of(result.outcome.reason) << ", seed " << seed;
        }
    const bool pivots = GetParam() == Algorithm::automatic || GetParam() == Algorithm::lu, truncates = GetParam() == Algorithm::truncated_spike;
    const bool blocks_pivot = GetParam() == Algorithm::spike;  // seldom needs it
    if (!blocks_pivot) { EXPECT_EQ(refined > 0, !pivots && !truncates); }
}

// Corners of a ring of one or two rows are added to other entries, and what that rounds is in no bound.
TEST(Reference, SmallRingsHaveNoCertificate) {
    for (std::int64_t n : {1, 2})
        for (std::uint64_t seed = 1; seed <= 200; ++seed) {
            const Bands<float> s = cast<float>(random_system(n, 0, seed, true));
            const Solved<float> result = run(reference_ops(), s, Algorithm::truncated_spike);
            if (!result.outcome.ok()) continue;
            EXPECT_EQ(result.outcome.reason, Reason::exact);
            EXPECT_TRUE(std::isnan(result.outcome.certificate));
        }
}

TEST(Reference, ABatchHasItsWeakestWord) {
    const Bands<double> good = random_system(100, 2, 7);
    Bands<double> waves(100);
    for (int k = 1;; ++k) {
        ASSERT_LT(k, 1000) << "no system that needs a refinement";
        const double diagonal = 1.9 * std::cos(k);
        for (std::int64_t i = 0; i < 100; ++i) waves.lower[i] = waves.upper[i] = -1, waves.diag[i] = diagonal, waves.rhs[i] = std::sin(i);
        if (run(reference_ops(), waves, Algorithm::thomas).outcome.reason == Reason::refined) break;
    }
    for (const bool last : {false, true}) {
        std::vector<double> band[4], x(200);
        for (const Bands<double>* s : {last ? &good : &waves, last ? &waves : &good}) {
            const std::vector<double>* from[] = {&s->lower, &s->diag, &s->upper, &s->rhs};
            for (int b = 0; b < 4; ++b) band[b].insert(band[b].end(), from[b]->begin(), from[b]->end());
        }
        const auto view = [](const std::vector<double>& v) { return View<const double>::contiguous(v.data(), 2, 100); };
        tridiagonal::Problem problem;
        problem.matrix = {view(band[0]), view(band[1]), view(band[2])};
        problem.rhs = view(band[3]);
        problem.x = View<double>::contiguous(x.data(), 2, 100);
        Context context({.threads = 1, .profile_path = "none", .log = {}});
        Queue queue(context, "reference");
        tridiagonal::Options options;
        options.algorithm = Algorithm::thomas;
        const Outcome outcome = tridiagonal::solve(queue, problem, options);
        EXPECT_EQ(outcome.reason, Reason::refined) << (last ? "refined last" : "refined first");
        EXPECT_EQ(outcome.rescued, 1);
    }
}

INSTANTIATE_TEST_SUITE_P(Named, ReferenceAlgorithm,
                         testing::Values(Algorithm::automatic, Algorithm::thomas, Algorithm::lu, Algorithm::twisted, Algorithm::cyclic_reduction,
                                         Algorithm::pcr, Algorithm::spike, Algorithm::truncated_spike),
                         [](const auto& info) { return std::string(tridiagonal::name_of(info.param)); });

}  // namespace
}  // namespace trifold::tests
