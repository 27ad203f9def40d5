// SPDX-License-Identifier: BSD-3-Clause
// Two passes over long systems that forget nothing: two rows at a time, what is accepted without refinement, and where three rows take over.
#include <cmath>
#include <limits>

#include "backends/cpu/tridiagonal/pivoted.hpp"
#include "families/tridiagonal/lu_gathers.hpp"
#include "unit/two_pass.hpp"

namespace trifold::tests {
namespace {

constexpr std::int64_t enough = (std::int64_t{1} << 19) + 14, chunk = 496;

template <class T>
Bands<T> waves(std::int64_t rows, double lower, double diag, double upper, std::uint64_t seed) {
    Bands<T> s = cast<T>(random_system(rows, 0, seed));
    std::fill(s.lower.begin(), s.lower.end(), static_cast<T>(lower)), std::fill(s.diag.begin(), s.diag.end(), static_cast<T>(diag));
    std::fill(s.upper.begin(), s.upper.end(), static_cast<T>(upper));
    s.lower.front() = s.upper.back() = T(0);
    return s;
}

/// The largest residual of a chunk against max|A| max|x| of it.
template <class T>
double worst_chunk(const Bands<T>& s, const std::vector<T>& x) {
    double worst = 0;
    for (std::int64_t first = 0; first < s.rows(); first += chunk) {
        double residual = 0, matrix = 0, size = 0;
        for (std::int64_t i = first; i < std::min(first + chunk, s.rows()); ++i) {
            const double left = static_cast<double>(s.rhs[i]) - (i > 0 ? static_cast<double>(s.lower[i]) * x[i - 1] : 0) - static_cast<double>(s.diag[i]) * x[i] -
                                (i + 1 < s.rows() ? static_cast<double>(s.upper[i]) * x[i + 1] : 0);
            residual = std::max(residual, std::abs(left)), size = std::max(size, std::abs(static_cast<double>(x[i])));
            matrix = std::max({matrix, std::abs(static_cast<double>(s.lower[i])), std::abs(static_cast<double>(s.diag[i])), std::abs(static_cast<double>(s.upper[i]))});
        }
        worst = std::max(worst, residual / (matrix * size));
    }
    return worst;
}

template <class T>
void answers(double lower, double diag, double upper) {
    const double u = unit_roundoff(dtype_of<T>);
    const Bands<T> s = waves<T>(enough, lower, diag, upper, 41);
    const double lapack = backward_error(cast<double>(s), as_double(gtsv(s).x));
    for (const bool in_place : {false, true}) {
        SCOPED_TRACE(testing::Message() << lower << ", " << diag << ", " << upper << (in_place ? " in place " : " ") << trifold::name_of(dtype_of<T>));
        const Solved<T> solved = two_pass(any_chunks(), s, chunk, 2, in_place);
        ASSERT_TRUE(solved.outcome.ok());
        EXPECT_EQ(solved.outcome.reason, Reason::exact) << solved.outcome.residual / u << " u";
        EXPECT_STREQ(solved.outcome.branch, "two_pass");
        EXPECT_LE(backward_error(cast<double>(s), as_double(solved.x)), std::max(lapack, 10 * u));
        // What is said, without a residual, is what there is: inside a chunk rows are off by a few roundings more.
        EXPECT_LE(worst_chunk(s, solved.x), 1.2 * solved.outcome.residual + 10 * u);
        EXPECT_EQ(solved.x, two_pass(any_chunks(), s, chunk, 3, in_place).x);
    }
}

TEST(TwoRows, AreEnoughWhereNothingIsForgotten) {
    on_every_target([] {
        answers<double>(1, 0.5, 1), answers<double>(1, 0, 1), answers<double>(-2, 1.1, -2);
        answers<float>(1, 0.5, 1), answers<float>(1, -1.3, 1);
    });
}

/// Roundings of equal rows do not add up in the one that waits for a pivot: some 45 u of a chunk, a third of that in the whole, whatever the numbers are. They did, up to 210 u, where
/// these are no powers of two and what was eliminated was not what is stored.
template <class T>
void keeps_to_its_quotients(std::int64_t rows, double scale) {
    const double u = unit_roundoff(dtype_of<T>);
    const Bands<T> s = waves<T>(rows, scale, 0.5 * scale, scale, 47);
    const double lapack = backward_error(cast<double>(s), as_double(gtsv(s).x));
    for (const bool in_place : {false, true}) {
        SCOPED_TRACE(testing::Message() << rows << " rows, " << scale << (in_place ? ", in place, " : ", ") << trifold::name_of(dtype_of<T>));
        const Solved<T> solved = two_pass(any_chunks(), s, tridiagonal::two_pass_chunk_rows(rows, dtype_of<T>), 2, in_place);
        EXPECT_EQ(solved.outcome.reason, Reason::exact);
        EXPECT_STREQ(solved.outcome.branch, "two_pass");
        EXPECT_LE(solved.outcome.residual, 72 * u);
        EXPECT_LE(backward_error(cast<double>(s), as_double(solved.x)), std::max(24 * u, lapack));
    }
}

TEST(TwoRows, KeepToTheirQuotients) {
    on_every_target([] {
        for (const double scale : {1.1, 3.0, 1e150}) keeps_to_its_quotients<double>(enough, scale);
        for (const double scale : {1.3, 1000.0, 1e-18}) keeps_to_its_quotients<float>(enough, scale);
    });
}

TEST(TwoRows, AreEnoughForShortSystemsToo) {
    on_every_target([] {
        for (const std::int64_t rows : {512, 1200, 4200, 9215, 40000, 200001})
            for (const double scale : {1.0, 1.1, 1.7, 3.0}) keeps_to_its_quotients<double>(rows, scale), keeps_to_its_quotients<float>(rows, scale);
    });
}

TEST(TwoRows, NothingIsForgottenByWavesAlone) {
    const auto forgets = [](const Bands<double>& s) {
        std::vector<double> x(s.rhs.size());
        return !cpu::forgets_nothing(tridiagonal::normalise(problem_of(s, x)));
    };
    for (const std::int64_t rows : {enough, enough / 2, std::int64_t{512}}) {
        EXPECT_FALSE(forgets(waves<double>(rows, 1, 0.5, 1, 42))) << rows;
        EXPECT_TRUE(forgets(random_system(rows, 0, 42))) << rows;
    }
    for (const std::int64_t rows : {64, 511}) EXPECT_TRUE(forgets(waves<double>(rows, 1, 0.5, 1, 42))) << rows << " rows are not looked at";
}

TEST(TwoRows, RoundingsOfLuAreCounted) {
    const auto gathers = [](const Bands<double>& s) {
        std::vector<double> x(s.rhs.size());
        return tridiagonal::lu_gathers(tridiagonal::normalise(problem_of(s, x)));
    };
    EXPECT_NEAR(gathers(waves<double>(enough, 1, 0.5, 1, 43)), std::sqrt(static_cast<double>(enough)), 10);
    EXPECT_LE(gathers(random_system(enough, 0, 43)), 10);
    EXPECT_LE(gathers(random_system(enough, 1.5, 43)), 3);
    EXPECT_LE(gathers(random_system(8, 0, 43)), 3);
}

/// Blocks of rows with next to no lower entries, whose leading minors are next to zero: of two rows neither is a pivot there.
template <class T>
void weak_pivots(T weak) {
    const double u = unit_roundoff(dtype_of<T>);
    Bands<T> s = waves<T>(enough, 1, 0.5, 1, 44);
    for (std::int64_t row = 700; row + 3 < enough; row += 25013) s.diag[row - row % chunk] = weak, s.lower[row - row % chunk + 1] = weak, s.diag[row] = weak, s.lower[row + 1] = -weak;
    s.lower[0] = 0;
    const double lapack = backward_error(cast<double>(s), as_double(gtsv(s).x));
    for (const bool in_place : {false, true}) {
        const Solved<T> solved = two_pass(any_chunks(), s, chunk, 2, in_place);
        ASSERT_TRUE(solved.outcome.ok()) << trifold::name_of(solved.outcome.reason) << ", " << weak;
        EXPECT_STREQ(solved.outcome.branch, "two_pass") << weak;
        EXPECT_LE(backward_error(cast<double>(s), as_double(solved.x)), 10 * std::max(lapack, u)) << weak;
    }
}

TEST(TwoRows, GiveWayToThreeWhereNeitherIsAPivot) {
    on_every_target([] {
        for (const double weak : {0.0, 1e-300, 1e-12, 1e-4, 1e-2}) weak_pivots<double>(weak);
        for (const float weak : {0.0f, 1e-6f, 1e-3f}) weak_pivots<float>(weak);
    });
}

TEST(TwoRows, NotFiniteAndSingularAreNamed) {
    on_every_target([] {
        for (const std::int64_t row : {std::int64_t{0}, std::int64_t{3 * 496}, std::int64_t{100007}, enough - 1}) {
            Bands<double> s = waves<double>(enough, 1, 0.5, 1, 45);
            for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
                for (auto band : {&Bands<double>::lower, &Bands<double>::diag, &Bands<double>::upper, &Bands<double>::rhs}) {
                    if ((band == &Bands<double>::lower && row == 0) || (band == &Bands<double>::upper && row == enough - 1)) continue;
                    Bands<double> spoilt = s;
                    (spoilt.*band)[row] = bad;
                    const Solved<double> solved = two_pass(any_chunks(), spoilt, chunk, 2);
                    if (std::isinf(bad) && band != &Bands<double>::rhs && solved.outcome.ok()) continue;  // taken for its limit
                    EXPECT_EQ(solved.outcome.reason, Reason::not_finite) << row;
                }
            s = waves<double>(enough, 1, 0.5, 1, 45);
            s.lower[row] = s.diag[row] = s.upper[row] = 0;
            for (const bool in_place : {false, true}) {
                const Solved<double> solved = two_pass(any_chunks(), s, chunk, 2, in_place);
                EXPECT_EQ(solved.outcome.reason, Reason::singular) << row;
                if (in_place) { EXPECT_EQ(solved.x, s.rhs); }
            }
        }
    });
}

TEST(TwoRows, AnyAlignmentAndNothingOutside) {
    on_every_target([] {
        for (const bool at_start : {false, true}) {
            const Bands<float> s = waves<float>(4 * enough + 5, 1, 0.5, 1, 46);
            const Solved<float> expected = two_pass(any_chunks(), s, chunk, 1);
            const Fenced<float> lower({s.lower.begin() + 1, s.lower.end()}, at_start), upper({s.upper.begin(), s.upper.end() - 1}, at_start);
            const Fenced<float> diag(s.diag, at_start), rhs(s.rhs, at_start), x(std::vector<float>(s.rhs.size(), 77), at_start);
            std::vector<float> unused(s.rhs.size());
            tridiagonal::System system = tridiagonal::normalise(problem_of(s, unused));
            system.lower.data = lower.data - 1, system.upper.data = upper.data, system.diag.data = diag.data, system.rhs.data = rhs.data, system.x.data = x.data;
            const Scratch64 scratch(tridiagonal::two_pass_workspace(any_chunks(), system, 1, chunk));
            tridiagonal::Launch launch;
            launch.scratch = scratch.data, launch.scratch_bytes = scratch.memory.size() - 64;
            ASSERT_TRUE(tridiagonal::solve_two_pass(any_chunks(), system, launch, chunk).ok());
            EXPECT_TRUE(std::equal(expected.x.begin(), expected.x.end(), x.data));
        }
    });
}

}  // namespace
}  // namespace trifold::tests
