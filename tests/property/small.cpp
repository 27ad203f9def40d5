// SPDX-License-Identifier: BSD-3-Clause
// Small systems on the cpu, which are eliminated from both ends: every number of rows, every place where something can go wrong.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "support/measure.hpp"
#include "support/random_system.hpp"
#include "support/run.hpp"
#include "trifold/trifold.hpp"

namespace trifold::tests {
namespace {

constexpr std::int64_t most_rows = 1024;  // of what is solved so

Context& context() {
    static Context shared({.threads = 2, .profile_path = "none", .log = {}});
    return shared;
}

template <class T>
struct Answer {
    Outcome outcome;
    std::vector<T> x;
};

// Rows `step` apart in one array each: -1 = from the last one back.
template <class T>
struct Spread {
    std::int64_t step, rows;
    std::vector<T> values;

    Spread(std::int64_t by, const std::vector<T>& from)
        : step(by), rows(static_cast<std::int64_t>(from.size())), values(from.size() * static_cast<std::size_t>(std::abs(by)) + 1) {
        for (std::size_t k = 0; k < values.size(); ++k) values[k] = static_cast<T>(std::cos(static_cast<double>(k)));  // as likely as any other
        for (std::int64_t i = 0; i < rows; ++i) at(i) = from[static_cast<std::size_t>(i)];
    }
    T& at(std::int64_t i) { return values[static_cast<std::size_t>(step > 0 ? i * step : (rows - 1 - i) * -step)]; }
    View<T> view() { return View<T>::strided(&at(0), {rows, step}, {}); }
};

template <class T>
Answer<T> solve(const Bands<T>& s, std::int64_t step = 1, bool in_place = false) {
    Spread<T> lower(step, s.lower), diag(step, s.diag), upper(step, s.upper), rhs(step, s.rhs), x(step, std::vector<T>(s.rhs.size(), T(77)));
    lower.at(0) = upper.at(s.rows() - 1) = std::numeric_limits<T>::quiet_NaN();  // never read
    tridiagonal::Problem problem;
    problem.matrix = {lower.view(), diag.view(), upper.view()};
    problem.rhs = rhs.view();
    problem.x = in_place ? rhs.view() : x.view();
    Queue queue(context());
    Answer<T> out{tridiagonal::solve(queue, problem), {}};
    for (std::int64_t i = 0; i < s.rows(); ++i) out.x.push_back((in_place ? rhs : x).at(i));
    return out;
}

template <class T>
double error_of(const Bands<T>& s, const Answer<T>& answer) {
    return backward_error(cast<double>(s), as_double(answer.x)) / unit_roundoff(dtype_of<T>);
}

std::vector<std::int64_t> sizes() {
    std::vector<std::int64_t> out;
    for (std::int64_t n = 1; n <= 40; ++n) out.push_back(n);
    for (const std::int64_t n : {63, 64, 65, 127, 128, 129, 200, 255, 256, 257, 1023, 1024}) out.push_back(n);
    return out;
}

template <class T>
void every_size() {
    for (const std::int64_t n : sizes())
        for (const double dominance : {0.0, 0.6, 1.0, 2.0}) {
            SCOPED_TRACE(testing::Message() << n << " rows, dominance " << dominance);
            const Bands<T> s = cast<T>(random_system(n, dominance, 3 + static_cast<std::uint64_t>(n)));
            const Answer<T> plain = solve(s);
            ASSERT_TRUE(plain.outcome.ok());
            ASSERT_LE(error_of(s, plain), dominance >= 1 ? 5 : 20);
            if (dominance >= 1) { ASSERT_STREQ(plain.outcome.branch, "twisted"); }
            for (const std::int64_t step : {1, 3, -1, -2})
                for (const bool in_place : {false, true}) ASSERT_EQ(solve(s, step, in_place).x, plain.x) << step << ", in place " << in_place;
        }
}

TEST(Small, EverySizeDouble) { every_size<double>(); }
TEST(Small, EverySizeSingle) { every_size<float>(); }

TEST(Small, NumbersInPlaceOfArrays) {
    for (const std::int64_t n : sizes()) {
        std::vector<double> rhs(static_cast<std::size_t>(n), 1.0), x(rhs);
        tridiagonal::Problem problem;
        problem.matrix = {-1.0, 2.5, -1.25};
        problem.rhs = View<const double>::rows(rhs), problem.x = View<double>::rows(x);
        Queue queue(context());
        ASSERT_TRUE(tridiagonal::solve(queue, problem).ok());
        Bands<double> s(n);
        std::ranges::fill(s.lower, -1.0), std::ranges::fill(s.diag, 2.5), std::ranges::fill(s.upper, -1.25), s.rhs = rhs;
        ASSERT_EQ(x, solve(s).x) << n;
    }
}

// A zero on the diagonal, where only an exchange with a neighbour helps, in every row.
TEST(Small, AZeroPivotAnywhere) {
    for (const std::int64_t n : {2, 3, 4, 5, 8, 9, 64, 65})
        for (std::int64_t row = 0; row < n; ++row) {
            Bands<double> s = random_system(n, 2, 5);
            s.diag[static_cast<std::size_t>(row)] = 0;
            for (auto* band : {&s.lower, &s.upper})
                for (double& value : *band) value = value < 0 ? value - 1 : value + 1;
            const Answer<double> answer = solve(s);
            ASSERT_TRUE(answer.outcome.ok()) << row << " of " << n;
            ASSERT_LE(error_of(s, answer), 20) << row << " of " << n;
        }
}

// Pivots that nearly vanish in the middle of either chain.
TEST(Small, ATinyPivotAnywhere) {
    for (const double tiny : {1e-3, 1e-8, 1e-16, 1e-30, 1e-300})
        for (const std::int64_t n : {2, 3, 4, 5, 8, 9, 64, 65})
            for (std::int64_t row = 0; row < n; ++row) {
                Bands<double> s = random_system(n, 3, 5);
                const auto i = static_cast<std::size_t>(row);
                s.diag[i] = tiny, s.lower[i] *= 0x1p-40, s.upper[i] *= 0x1p-40;  // what is eliminated first finds only this
                if (row > 0) s.upper[i - 1] = 1;
                if (row + 1 < n) s.lower[i + 1] = 1;
                const Answer<double> answer = solve(s);
                ASSERT_TRUE(answer.outcome.ok()) << tiny << " in row " << row << " of " << n;
                ASSERT_LE(error_of(s, answer), 20) << tiny << " in row " << row << " of " << n;
            }
}

TEST(Small, ASingularRowAnywhereIsNamed) {
    for (const std::int64_t n : {1, 2, 3, 4, 5, 8, 9, 64, 65})
        for (std::int64_t row = 0; row < n; ++row)
            for (const bool in_place : {false, true}) {
                SCOPED_TRACE(testing::Message() << row << " of " << n << ", in place " << in_place);
                Bands<double> s = random_system(n, 2, 6);
                const auto i = static_cast<std::size_t>(row);
                s.lower[i] = s.diag[i] = s.upper[i] = 0;
                if (row > 0) s.upper[i - 1] = 0;
                if (row + 1 < n) s.lower[i + 1] = 0;
                const Answer<double> answer = solve(s, 1, in_place);
                ASSERT_EQ(answer.outcome.reason, Reason::singular);
                ASSERT_EQ(answer.outcome.row, row);
                ASSERT_EQ(answer.outcome.system, 0);
                ASSERT_EQ(answer.outcome.failures, 1);
                if (in_place) { ASSERT_EQ(answer.x, s.rhs); }
            }
}

template <class T>
void not_finite_anywhere() {
    for (const T bad : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity()})
        for (const std::int64_t n : {1, 2, 3, 4, 5, 8, 9, 32, 33})
            for (std::int64_t row = 0; row < n; ++row)
                for (int band = 0; band < 4; ++band) {
                    if ((band == 0 && row == 0) || (band == 2 && row == n - 1)) continue;
                    SCOPED_TRACE(testing::Message() << bad << " in array " << band << ", row " << row << " of " << n);
                    for (const double dominance : {0.0, 2.0}) {
                        Bands<T> s = cast<T>(random_system(n, dominance, 6));
                        std::vector<T>* bands[] = {&s.lower, &s.diag, &s.upper, &s.rhs};
                        (*bands[band])[static_cast<std::size_t>(row)] = bad;
                        const Answer<T> answer = solve(s, 1, true);
                        ASSERT_EQ(answer.outcome.reason, Reason::not_finite);
                        ASSERT_EQ(answer.outcome.row, row);
                        if (band < 3) { ASSERT_EQ(answer.x, s.rhs); }
                    }
                }
}

TEST(Small, WhatIsNotFiniteAnywhereIsNamedDouble) { not_finite_anywhere<double>(); }
TEST(Small, WhatIsNotFiniteAnywhereIsNamedSingle) { not_finite_anywhere<float>(); }

TEST(Small, NearTheEndsOfTheRange) {
    for (const std::int64_t n : {1, 2, 3, 8, 65})
        for (const int power : {-1010, -900, 900, 1015}) {
            Bands<double> s = random_system(n, 2, 9);
            for (auto* band : {&s.lower, &s.diag, &s.upper, &s.rhs})
                for (double& value : *band) value = std::ldexp(value, power);
            const Answer<double> answer = solve(s);
            ASSERT_TRUE(answer.outcome.ok()) << n << " rows times 2^" << power;
            Bands<double> plain = s;
            for (auto* band : {&plain.lower, &plain.diag, &plain.upper, &plain.rhs})
                for (double& value : *band) value = std::ldexp(value, -power);
            ASSERT_LE(backward_error(plain, answer.x) / 0x1p-53, 20) << n << " rows times 2^" << power;
        }
}

// Neumann's problem: all pivots are 1 from either end, and nothing is left where they meet.
TEST(Small, ChainsThatMeetInNothing) {
    for (const std::int64_t n : sizes()) {
        Bands<double> s(n);
        std::ranges::fill(s.lower, -1.0), std::ranges::fill(s.diag, 2.0), std::ranges::fill(s.upper, -1.0), std::ranges::fill(s.rhs, 1.0);
        s.diag.front() -= 1, s.diag.back() -= 1;
        const Answer<double> answer = solve(s);
        ASSERT_EQ(answer.outcome.reason, Reason::singular) << n;
        ASSERT_EQ(answer.outcome.row, n - 1);
    }
}

Bands<double> any_system(std::int64_t n) {
    static constexpr double dominances[] = {0.0, 0.3, 0.7, 1.0, 1.1, 3.0};
    Bands<double> s = random_system(n, dominances[*rc::gen::inRange(0, 6)], *rc::gen::arbitrary<std::uint64_t>());
    // Rows of other sizes, as from strongly varying coefficients.
    const int spread = *rc::gen::inRange(0, 30);
    Random random(*rc::gen::arbitrary<std::uint64_t>());
    for (std::size_t i = 0; i < s.diag.size(); ++i) {
        const double by = std::ldexp(1.0, static_cast<int>(random.uniform(-spread, spread + 1)));
        s.lower[i] *= by, s.diag[i] *= by, s.upper[i] *= by, s.rhs[i] *= by;
    }
    return s;
}

// |r_i| against its own row: unpivoted elimination that passes its test is good row by row.
TEST(Small, EveryRowHolds) {
    EXPECT_TRUE(rc::check("every row holds", [] {
        const std::int64_t n = *rc::gen::inRange<std::int64_t>(1, 300);
        const Bands<double> s = any_system(n);
        const Answer<double> answer = solve(s);
        RC_ASSERT(answer.outcome.ok());
        const bool unpivoted = std::string_view(answer.outcome.branch) == "twisted";
        RC_CLASSIFY(unpivoted, "twisted");
        if (!unpivoted) return;
        const double largest_x = largest(answer.x);
        for (std::int64_t i = 0; i < n; ++i) {
            const auto k = static_cast<std::size_t>(i);
            const double row = std::max({std::abs(s.lower[k]), std::abs(s.diag[k]), std::abs(s.upper[k])}) * largest_x + std::abs(s.rhs[k]);
            RC_ASSERT(std::abs(row_times(s, answer.x, i) - s.rhs[k]) <= 60 * 0x1p-53 * row);
        }
    }));
}

// Which end is called the first does not matter: to the bit where the chains are equally long.
TEST(Small, TurnedRound) {
    EXPECT_TRUE(rc::check("turned round", [] {
        const std::int64_t n = *rc::gen::inRange<std::int64_t>(1, 300);
        const Bands<double> s = any_system(n);
        Bands<double> turned = s;
        std::swap(turned.lower, turned.upper);
        for (auto* band : {&turned.lower, &turned.diag, &turned.upper, &turned.rhs}) std::ranges::reverse(*band);
        const Answer<double> one = solve(s);
        Answer<double> other = solve(turned);
        RC_ASSERT(one.outcome.ok() && other.outcome.ok());
        RC_ASSERT(backward_error(turned, other.x) <= 20 * 0x1p-53);
        std::ranges::reverse(other.x);
        if (n % 2 == 1 && std::string_view(one.outcome.branch) == "twisted") RC_ASSERT(other.x == one.x);
    }));
}

// A report changes nothing but that it is written.
TEST(Small, WithAReportTheSame) {
    for (const std::int64_t n : {1, 2, 64, 257, 1000, 1024})
        for (const double dominance : {0.0, 2.0}) {
            const Bands<double> s = random_system(n, dominance, 11);
            const Answer<double> plain = solve(s);
            std::vector<double> x(s.rhs.size());
            Report report;
            tridiagonal::Options options;
            options.report = &report, options.check_finite = true;
            Queue queue(context());
            const Outcome outcome = tridiagonal::solve(queue, problem_of(s, x), options);
            EXPECT_STREQ(outcome.branch, plain.outcome.branch) << n;
            EXPECT_EQ(x, plain.x) << n;
        }
}

// Fewer systems than a vector has lanes.
TEST(Small, AFewOfThem) {
    for (const std::int64_t n : {1, 2, 9, 64, 300, 1000})
        for (const std::int64_t systems : {2, 3, 7, 12, 15})
            for (const bool interleaved : {false, true})
                for (const std::int64_t singular : {std::int64_t{-1}, systems / 2}) {
                    SCOPED_TRACE(testing::Message() << systems << " systems of " << n << " rows, interleaved " << interleaved << ", singular " << singular);
                    std::vector<Bands<double>> all;
                    std::vector<double> lower(static_cast<std::size_t>(n * systems)), diag(lower), upper(lower), rhs(lower), x(lower), y(lower);
                    const auto place = [&](std::int64_t i, std::int64_t k) { return static_cast<std::size_t>(interleaved ? i * systems + k : k * n + i); };
                    for (std::int64_t k = 0; k < systems; ++k) {
                        all.push_back(random_system(n, k % 3 == 2 ? 0 : 2, static_cast<std::uint64_t>(n * systems + k)));
                        Bands<double>& s = all.back();
                        if (k == singular) s.lower[0] = s.diag[0] = s.upper[0] = 0, s.lower[n > 1 ? 1 : 0] = 0;
                        for (std::int64_t i = 0; i < n; ++i) {
                            const auto from = static_cast<std::size_t>(i);
                            lower[place(i, k)] = s.lower[from], diag[place(i, k)] = s.diag[from], upper[place(i, k)] = s.upper[from], rhs[place(i, k)] = s.rhs[from];
                        }
                    }
                    const auto view = [&](std::vector<double>& v) { return interleaved ? View<double>::interleaved(v.data(), n, systems) : View<double>::contiguous(v.data(), systems, n); };
                    tridiagonal::Problem problem;
                    problem.matrix = {view(lower), view(diag), view(upper)};
                    problem.rhs = view(rhs), problem.x = view(x);
                    std::vector<std::int8_t> status(static_cast<std::size_t>(systems), 77);
                    tridiagonal::Options options;
                    options.status = status.data();
                    Queue queue(context());
                    const Outcome outcome = tridiagonal::solve(queue, problem, options);
                    ASSERT_EQ(outcome.ok(), singular < 0);
                    ASSERT_EQ(outcome.system, singular);
                    ASSERT_EQ(outcome.failures, singular < 0 ? 0 : 1);
                    if (singular >= 0) { ASSERT_EQ(outcome.reason, Reason::singular); }
                    for (std::int64_t k = 0; k < systems; ++k) {
                        ASSERT_EQ(status[static_cast<std::size_t>(k)] < 0, k == singular) << k;
                        if (k == singular) continue;
                        std::vector<double> own;
                        for (std::int64_t i = 0; i < n; ++i) own.push_back(x[place(i, k)]);
                        ASSERT_LE(backward_error(all[static_cast<std::size_t>(k)], own), 20 * 0x1p-53) << k;
                    }
                    Report report;
                    options.report = &report, problem.x = view(y);
                    const Outcome again = tridiagonal::solve(queue, problem, options);
                    ASSERT_EQ(again.reason, outcome.reason);
                    if (singular < 0) { ASSERT_EQ(x, y) << report.plan.why; }
                }
}

TEST(Small, OneRowMoreIsSolvedToo) {
    for (const std::int64_t n : {most_rows + 1, most_rows + 2, 2 * most_rows, 4 * most_rows - 1, 4 * most_rows, 4 * most_rows + 1})
        for (const double dominance : {0.0, 0.8, 2.0})
            for (const bool singular : {false, true}) {
                SCOPED_TRACE(testing::Message() << n << " rows, dominance " << dominance << ", singular " << singular);
                Bands<double> s = random_system(n, dominance, 12);
                const auto row = static_cast<std::size_t>(n / 3);
                if (singular) s.lower[row] = s.diag[row] = s.upper[row] = s.upper[row - 1] = s.lower[row + 1] = 0;
                const Answer<double> answer = solve(s);
                ASSERT_EQ(answer.outcome.reason == Reason::singular, singular);
                if (singular) {
                    ASSERT_EQ(answer.outcome.row, n / 3);
                    continue;
                }
                ASSERT_TRUE(answer.outcome.ok());
                ASSERT_LE(error_of(s, answer), 20);
                if (dominance > 1 && n < 4 * most_rows) { ASSERT_STREQ(answer.outcome.branch, "twisted"); }
                for (const std::int64_t step : {1, 3, -1}) {
                    const Answer<double> in_place = solve(s, step, true);
                    ASSERT_LE(error_of(s, in_place), 20) << step;
                    if (dominance > 1 && n < 4 * most_rows) { ASSERT_EQ(in_place.x, answer.x) << step; }
                }
            }
}

}  // namespace
}  // namespace trifold::tests
