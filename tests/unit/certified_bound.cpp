// SPDX-License-Identifier: BSD-3-Clause
// The certificate is a bound: on 10^5 random systems it is never below the true error.
#include <cmath>

#include "certified.hpp"
#include "support/measure.hpp"
#include "support/random_system.hpp"
#include "support/truth.hpp"

namespace trifold::tests {
namespace {

struct Tally {
    int accepted = 0, exact = 0, refused = 0, tight = 0;
};

template <class T>
void check(const Bands<T>& s, const How& how, Tally& tally) {
    const Certified<T> result = certify(s, how);
    ASSERT_TRUE(result.fences);
    if (!result.accepted) {
        ++tally.refused;
        ASSERT_FALSE(result.outcome.ok());
        return;
    }
    if (result.outcome.reason == Reason::exact) {
        ++tally.exact;
        ASSERT_TRUE(std::isnan(result.outcome.certificate));
        ASSERT_LE(backward_error(cast<double>(s), as_double(result.x)), 40 * unit_roundoff(dtype_of<T>) + how.tolerance);
        return;
    }
    ++tally.accepted;
    ASSERT_EQ(result.outcome.reason, Reason::certified);
    const std::vector<DoubleDouble> truth = true_solution(cast<double>(s));
    double most = 0;
    for (const DoubleDouble value : truth) most = std::max(most, std::abs(value.hi));
    const double error = largest_error(as_double(result.x), truth) / most;
    ASSERT_GE(result.outcome.certificate, error);
    tally.tight += result.outcome.certificate <= std::max(1e3 * error, 1e4 * unit_roundoff(dtype_of<T>));
}

/// Couplings that decay at all rates, both ways or one way; pieces of the solution far larger than what lies beside them.
Bands<double> draw(std::int64_t n, Random& random) {
    const double dominance = 1 + std::pow(10.0, random.uniform(-0.7, 1.5));
    Random of_matrix(random.bits());
    Bands<double> s = random_matrix(n, dominance, of_matrix);
    switch (random.below(5)) {
        case 0: break;
        case 1:  // couplings of one size decay slowest
            for (std::int64_t i = 0; i < n; ++i) s.lower[i] = s.upper[i] = -1, s.diag[i] = 2 * dominance;
            break;
        case 2: {  // advection: one way fast, the other slowly
            const double lean = random.uniform(0, 1);
            for (std::int64_t i = 0; i < n; ++i) s.lower[i] = -2 * lean, s.upper[i] = -2 * (1 - lean), s.diag[i] = 2 * dominance;
            break;
        }
        case 3:  // pivots that elimination without exchange makes small
            for (std::int64_t i = random.below(50); i < n; i += 1 + random.below(200)) s.diag[i] *= std::pow(10.0, random.uniform(-2, 0));
            break;
        case 4:  // columns of very different size
            for (std::int64_t i = 0; i + 1 < n; ++i)
                if (random.chance(0.02)) {
                    const double scale = std::pow(10.0, random.uniform(-5, 1));
                    s.diag[i] *= scale;
                    if (i > 0) s.upper[i - 1] *= scale;
                    s.lower[i + 1] *= scale;
                }
            break;
    }
    std::vector<double> x(n);
    for (double& value : x) value = random.uniform(1, 5);
    for (std::int64_t i = 0; i < n; ++i) s.rhs[i] = row_times(s, x, i);
    if (random.chance(0.5))
        for (std::int64_t i = random.below(n), k = 0; i < n && k < 40; ++i, ++k) s.rhs[i] *= std::pow(10.0, random.uniform(0, 13));
    if (random.chance(0.1))  // a source in the midst of zeros
        for (std::int64_t i = 0, keep = random.below(n); i < n; ++i) s.rhs[i] *= i == keep;
    return s;
}

template <class T>
void bounds_the_error(int systems, std::uint64_t first_seed) {
    Tally tally;
    for (int k = 0; k < systems && !testing::Test::HasFatalFailure(); ++k) {
        Random random(first_seed + k);
        const std::int64_t lanes = 64 / static_cast<std::int64_t>(sizeof(T));
        const std::int64_t right = 1 + random.below(sizeof(T) == 4 ? 4 : 7), block = right + 1 + random.below(2), length = 2 * block + random.below(3);
        How how;
        how.tolerance = random.chance(0.2) ? 0 : std::pow(10.0, random.uniform(sizeof(T) == 4 ? -7 : -12, -2));
        const double margin = random.chance(0.3) ? 0x1p-42 : 0x1p-4;
        how.stretches = tiles<T>(random.chance(0.1) ? 0 : right, right, block, length,
                                 margin * (how.tolerance > 0 ? how.tolerance : unit_roundoff(dtype_of<T>)));
        how.in_place = random.chance(0.3);
        how.offset = random.below(lanes);
        const std::int64_t n = lanes * lanes * length * (1 + random.below(2)) + lanes + 1 + random.below(lanes * lanes);
        SCOPED_TRACE(testing::Message() << "seed " << first_seed + k << ", " << n << " rows");
        check(cast<T>(draw(n, random)), how, tally);
    }
    EXPECT_GT(tally.accepted, systems / 8);
    EXPECT_GT(tally.refused, systems / 20);
    EXPECT_GT(tally.tight, tally.accepted / 4);
}

TEST(CertifiedBound, NeverBelowTheErrorF64a) { bounds_the_error<double>(20000, 1000000); }
TEST(CertifiedBound, NeverBelowTheErrorF64b) { bounds_the_error<double>(20000, 2000000); }
TEST(CertifiedBound, NeverBelowTheErrorF64c) { bounds_the_error<double>(20000, 3000000); }
TEST(CertifiedBound, NeverBelowTheErrorF32a) { bounds_the_error<float>(20000, 4000000); }
TEST(CertifiedBound, NeverBelowTheErrorF32b) { bounds_the_error<float>(20000, 5000000); }

TEST(CertifiedBound, HoldsOnEveryTarget) {
    on_every_target([] {
        bounds_the_error<double>(300, 6000000);
        bounds_the_error<float>(300, 7000000);
    });
}

}  // namespace
}  // namespace trifold::tests
