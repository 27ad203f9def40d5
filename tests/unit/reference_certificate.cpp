// SPDX-License-Identifier: BSD-3-Clause
// The certificate of truncated SPIKE is a bound: never below the true error, and refused where nothing decays.
#include <gtest/gtest.h>

#include "backends/reference/tridiagonal/ops.hpp"
#include "support/measure.hpp"
#include "support/random_system.hpp"
#include "support/run.hpp"
#include "support/truth.hpp"

namespace trifold::tests {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::reference_ops;

struct Tally {
    int certified = 0, refused = 0;
};

template <class T>
void check(const Bands<T>& s, double tolerance, Tally& tally) {
    const Solved<T> result = run(reference_ops(), s, Algorithm::truncated_spike, tolerance);
    if (!result.outcome.ok()) {
        EXPECT_TRUE(result.outcome.reason == Reason::not_certified || result.outcome.reason == Reason::unstable);
        ++tally.refused;
        return;
    }
    EXPECT_EQ(result.outcome.reason, Reason::certified);
    const std::vector<DoubleDouble> truth = true_solution(cast<double>(s));
    double most = 0;
    for (const DoubleDouble value : truth) most = std::max(most, std::abs(value.hi));
    const double error = largest_error(as_double(result.x), truth) / most;
    EXPECT_GE(result.outcome.certificate, error);
    ++tally.certified;
}

TEST(ReferenceCertificate, BoundsTheErrorOfRandomSystems) {
    Tally tally;
    for (std::uint64_t seed = 1; seed <= 600; ++seed) {
        Random random(seed);
        const double dominance = 1 + std::pow(10.0, random.uniform(-3, 0.3));
        const bool periodic = random.chance(0.3);
        const std::int64_t n = 1 + random.below(2000);
        SCOPED_TRACE(testing::Message() << n << " rows, dominance " << dominance << ", seed " << seed);
        Bands<double> s = random_system(n, dominance, seed, periodic);
        // Couplings of one size decay slowly, those of random size fast.
        if (random.chance(0.5)) {
            for (std::int64_t i = 0; i < n; ++i) s.lower[i] = s.upper[i] = -1, s.diag[i] = 2 * dominance;
            set_rhs(s, random);
        }
        // In half of the cases a piece of the solution is far larger than what lies beside it.
        if (random.chance(0.5))
            for (std::int64_t i = random.below(n), k = 0; i < n && k < 40; ++i, ++k) s.rhs[i] *= 1e12;
        const double tolerance = random.chance(0.5) ? 0x1p-53 : std::pow(10.0, random.uniform(-14, -3));
        check(s, tolerance, tally);
        check(cast<float>(s), std::max(tolerance, 0x1p-24), tally);
    }
    EXPECT_GT(tally.certified, 400);
    EXPECT_GT(tally.refused, 40);
}

TEST(ReferenceCertificate, SeesAGiantBeyondTheNeighbour) {
    // Spikes of 1.05-dominant systems are about 1e-12 at the far end of a block of 128 rows: enough alone, not before 1e20.
    Bands<double> s(512);
    for (std::int64_t i = 0; i < 512; ++i) s.lower[i] = s.upper[i] = -1, s.diag[i] = 2.05, s.rhs[i] = 1;
    const double tolerance = 1e-9;
    EXPECT_TRUE(run(reference_ops(), s, Algorithm::truncated_spike, tolerance).outcome.ok());
    s.rhs[127] = 1e20;
    const Solved<double> result = run(reference_ops(), s, Algorithm::truncated_spike, tolerance);
    EXPECT_EQ(result.outcome.reason, Reason::not_certified);
    EXPECT_GE(result.outcome.row, 0);
}

TEST(ReferenceCertificate, RefusesPoisson) {
    Bands<double> s(4096);
    for (std::int64_t i = 0; i < 4096; ++i) s.lower[i] = s.upper[i] = -1, s.diag[i] = 2, s.rhs[i] = 1;
    EXPECT_EQ(run(reference_ops(), s, Algorithm::truncated_spike).outcome.reason, Reason::not_certified);
}

}  // namespace
}  // namespace trifold::tests
