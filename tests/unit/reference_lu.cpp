// SPDX-License-Identifier: BSD-3-Clause
// The pivoted paths of the reference: as LAPACK does, and safe where a ring's leading block is singular.
#include <gtest/gtest.h>

#include "backends/reference/tridiagonal/ops.hpp"
#include "support/lapack.hpp"
#include "support/measure.hpp"
#include "support/random_system.hpp"
#include "support/run.hpp"
#include "support/truth.hpp"

namespace trifold::tests {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::reference_ops;

template <class T>
void agrees_with_lapack(const Bands<T>& s) {
    const Gtsv<T> peer = gtsv(s);
    const Solved<T> own = run(reference_ops(), s, Algorithm::lu);
    if (peer.info > 0) {
        EXPECT_EQ(own.outcome.reason, Reason::singular);
        EXPECT_EQ(own.outcome.row, peer.info - 1);
        return;
    }
    if (!all_finite(as_double(peer.x))) {
        EXPECT_EQ(own.outcome.reason, Reason::not_finite);
        return;
    }
    ASSERT_TRUE(own.outcome.ok()) << name_of(own.outcome.reason);
    const Bands<double> exact = cast<double>(s);
    const double u = unit_roundoff(dtype_of<T>);
    EXPECT_LE(backward_error(exact, as_double(own.x)), 10 * std::max(backward_error(exact, as_double(peer.x)), u));
}

TEST(ReferenceLu, AgreesWithLapackOnTheZoo) {
    for (const ZooEntry& entry : zoo())
        for (std::int64_t n : {1, 2, 3, 10, 63, 64, 300})
            for (std::uint64_t seed : {1, 2, 3}) {
                SCOPED_TRACE(testing::Message() << entry.name << ", " << n << " rows, seed " << seed);
                const Bands<double> s = make(entry, n, seed);
                agrees_with_lapack(s);
                if (const Bands<float> single = cast<float>(s); all_finite(as_double(single.rhs)) && all_finite(as_double(single.diag)))
                    agrees_with_lapack(single);
            }
}

TEST(ReferenceLu, NamesTheSingularRow) {
    for (std::int64_t n : {1, 2, 5, 400})
        for (std::int64_t row : {std::int64_t{0}, n / 2, n - 1}) {
            Bands<double> s = random_system(n, 2, 8);
            s.diag[row] = 0;
            if (row > 0) s.lower[row] = s.upper[row - 1] = 0;
            if (row < n - 1) s.upper[row] = s.lower[row + 1] = 0;
            const Solved<double> result = run(reference_ops(), s, Algorithm::automatic);
            EXPECT_EQ(result.outcome.reason, Reason::singular);
            EXPECT_EQ(result.outcome.system, 0);
            EXPECT_EQ(result.outcome.row, row);
            EXPECT_EQ(result.outcome.failures, 1);
            EXPECT_STREQ(result.outcome.branch, "lu");
        }
}

TEST(ReferenceLu, SolvesRingsOfAllKinds) {
    for (std::int64_t n : {1, 2, 3, 4, 5, 6, 7, 50, 51, 199, 1000})
        for (std::uint64_t seed = 1; seed <= 20; ++seed) {
            SCOPED_TRACE(testing::Message() << n << " rows, seed " << seed);
            const Bands<double> s = random_system(n, 0, seed, true);
            const Solved<double> result = run(reference_ops(), s, Algorithm::lu);
            ASSERT_TRUE(result.outcome.ok());
            EXPECT_LE(backward_error(s, result.x), 10 * 0x1p-53);
        }
}

// Off-diagonal ones on a ring of zeros: n = 3 has a leading 2 × 2 block that is regular, a leading 1 × 1 that is not; n = 4 and 8 are
// singular, every other n is regular although half of the leading blocks are not.
TEST(ReferenceLu, SolvesARingWithoutADiagonal) {
    for (std::int64_t n = 3; n <= 41; ++n) {
        Bands<double> s(n, true);
        std::fill(s.lower.begin(), s.lower.end(), 1.0);
        std::fill(s.upper.begin(), s.upper.end(), 1.0);
        Random random(n);
        set_rhs(s, random);
        const Solved<double> result = run(reference_ops(), s, Algorithm::lu);
        if (n % 4 == 0) {
            EXPECT_EQ(result.outcome.reason, Reason::singular) << n;
            EXPECT_GE(result.outcome.row, 0);
            continue;
        }
        ASSERT_TRUE(result.outcome.ok()) << n;
        EXPECT_LE(forward_error(result.x, true_solution(s)), 1e-13) << n;
    }
}

TEST(ReferenceLu, ARingOfNeumannConditionsIsSingularOrHuge) {
    for (std::int64_t n : {3, 16, 100}) {
        Bands<double> s(n, true);
        for (std::int64_t i = 0; i < n; ++i) s.lower[i] = s.upper[i] = -1, s.diag[i] = 2, s.rhs[i] = double(i);
        const Solved<double> result = run(reference_ops(), s, Algorithm::lu);
        if (result.outcome.ok()) { EXPECT_GT(largest(result.x), 1e12); }
    }
}

}  // namespace
}  // namespace trifold::tests
