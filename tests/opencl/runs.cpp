// SPDX-License-Identifier: BSD-3-Clause
// One system on a GPU: a short one by one group, a longer one that does not forget in runs of 544 rows, 32 of them joined to one, and again; what needs pivots is found out and left to chunks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "opencl/loaded.hpp"
#include "trifold/trifold.hpp"

namespace trifold::tests {
namespace {

constexpr std::int64_t run = 544;

template <class T>
struct OneSystem {
    std::vector<T> lower, diag, upper, rhs;

    explicit OneSystem(std::int64_t n) : lower(static_cast<std::size_t>(n)), diag(lower.size()), upper(lower.size()), rhs(lower.size()) {}

    /// max|rhs - A x| / (max|A| max|x| + max|rhs|) in unit roundoffs.
    double backward_error(const std::vector<T>& x) const {
        long double rest = 0, size = 0, right = 0, entry = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const long double before = i > 0 ? x[i - 1] : 0, here = x[i], after = i + 1 < x.size() ? x[i + 1] : 0, l = i > 0 ? lower[i] : 0, u = i + 1 < x.size() ? upper[i] : 0;
            const long double r = std::abs(rhs[i] - l * before - diag[i] * here - u * after);
            if (!(r <= rest)) rest = r;
            size = std::max(size, std::abs(here)), right = std::max(right, std::abs(static_cast<long double>(rhs[i])));
            entry = std::max({entry, std::abs(l), std::abs(static_cast<long double>(diag[i])), std::abs(u)});
        }
        return static_cast<double>(rest / (entry * size + right) / (std::numeric_limits<T>::epsilon() / 2));
    }
};

enum Kind { poisson, its_negative, layers, beside_each_other, one_pivot, kinds };

template <class T>
OneSystem<T> system_of(std::int64_t n, int kind, std::mt19937_64& random) {
    std::uniform_real_distribution<double> any(-1, 1);
    OneSystem<T> s(n);
    double before = 1;
    for (std::size_t i = 0; i < s.rhs.size(); ++i) {
        const double after = kind == layers ? std::exp(3 * any(random)) : 1, sign = kind == its_negative ? -1 : 1;
        s.lower[i] = static_cast<T>(-sign * before), s.upper[i] = static_cast<T>(-sign * after), s.diag[i] = static_cast<T>(sign * (before + after)), s.rhs[i] = static_cast<T>(any(random));
        if (kind == beside_each_other) s.lower[i] = s.upper[i] = 1;  // x of one sign beside that of the other
        before = after;
    }
    if (kind == one_pivot) s.diag[s.rhs.size() / 2] = 0;
    return s;
}

class Runs : public ::testing::Test {
protected:
    void SetUp() override {
        name_ = opencl_device_name();
        if (name_.empty()) GTEST_SKIP() << no_device;
    }

    template <class T>
    Outcome solve(Queue& queue, const OneSystem<T>& s, std::vector<T>& x, bool in_place, std::int64_t stride = 1) {
        std::vector<T> spread(s.rhs.size() * static_cast<std::size_t>(stride), std::numeric_limits<T>::quiet_NaN());
        const auto rows = static_cast<std::int64_t>(s.rhs.size());
        if (in_place)
            for (std::int64_t i = 0; i < rows; ++i) spread[static_cast<std::size_t>(i * stride)] = s.rhs[static_cast<std::size_t>(i)];
        tridiagonal::Problem p;
        p.matrix = {View<const T>::rows(std::span(s.lower)), View<const T>::rows(std::span(s.diag)), View<const T>::rows(std::span(s.upper))};
        p.x = View<T>::strided(spread.data(), {rows, stride}, {});
        p.rhs = in_place ? View<const T>::strided(spread.data(), {rows, stride}, {}) : View<const T>::rows(std::span(s.rhs));
        const Outcome outcome = tridiagonal::solve(queue, p);
        x.resize(s.rhs.size());
        for (std::int64_t i = 0; i < rows; ++i) x[static_cast<std::size_t>(i)] = spread[static_cast<std::size_t>(i * stride)];
        return outcome;
    }

    template <class T>
    void check(Queue& queue) {
        const unsigned seed = 17;
        std::mt19937_64 random(seed);
        const std::int64_t few = sizeof(T) == 8 ? 1152 : 2176, most = 4 * few;  // rows of a short one, by 128 items and by 512; 256 between them
        for (const std::int64_t n : {std::int64_t{512}, run - 1, run, run + 1, 2 * run, few - 1, few, few + 1, 2 * few, 2 * few + 1, most - 1, most, most + 1, 31 * run + 5, 32 * run - 1, 32 * run, 32 * run + 1, 33 * run + 543, 1025 * run + 1})
            for (int kind = 0; kind < kinds; ++kind)
                for (const bool in_place : {false, true}) {
                    SCOPED_TRACE(testing::Message() << n << " rows, kind " << kind << ", " << sizeof(T) << " bytes" << (in_place ? ", in place" : "") << ", seed " << seed);
                    const OneSystem<T> s = system_of<T>(n, kind, random);
                    std::vector<T> x, again;
                    const Outcome outcome = solve(queue, s, x, in_place);
                    ASSERT_TRUE(outcome.ok()) << trifold::name_of(outcome.reason);
                    if (n > most || kind != one_pivot) {
                        EXPECT_STREQ(outcome.branch, n <= most ? "thomas" : "two_pass");
                    }
                    EXPECT_LE(s.backward_error(x), 20);
                    solve(queue, s, again, in_place);
                    EXPECT_EQ(x, again);
                    if (!in_place && n == 33 * run + 543) {
                        solve(queue, s, again, false, 3);
                        EXPECT_EQ(x, again);
                    }
                    if (HasFailure()) return;
                }
    }

    std::string name_;
    Context context_{{.threads = 2, .profile_path = "none", .log = {}}};
};

TEST_F(Runs, OfAnyNumberOfRows) {
    Queue queue(context_, name_);
    check<double>(queue);
    check<float>(queue);
}

// Groups that end early leave meetings that others have come to: the next system finds none of that.
TEST_F(Runs, AfterWhatFailed) {
    Queue queue(context_, name_);
    std::mt19937_64 random(5);
    for (const std::int64_t n : {std::int64_t{3000}, std::int64_t{20000}, 70 * run, 600 * run + 1}) {
        const OneSystem<double> fails = system_of<double>(n, one_pivot, random), holds = system_of<double>(n, poisson, random);
        OneSystem<double> forgets = holds;
        for (double& d : forgets.diag) d = 4;
        for (int k = 0; k < 6; ++k)
            for (const OneSystem<double>* s : {&fails, &holds, static_cast<const OneSystem<double>*>(&forgets)}) {
                std::vector<double> x;
                const Outcome outcome = solve(queue, *s, x, false);
                ASSERT_TRUE(outcome.ok()) << n << " rows, turn " << k << ": " << trifold::name_of(outcome.reason);
                ASSERT_LE(s->backward_error(x), 20) << n << " rows, turn " << k;
            }
    }
}

/// A copy of `values`, `stride` apart; between them, and where there is none, what is not to be read.
template <class T>
std::vector<T> spread(const std::vector<T>& values, std::int64_t stride) {
    std::vector<T> out(values.size() * static_cast<std::size_t>(stride), std::numeric_limits<T>::quiet_NaN());
    for (std::size_t i = 0; i < values.size(); ++i) out[i * static_cast<std::size_t>(stride)] = values[i];
    return out;
}

/// Short ones around the ends of parts of 32 lanes, with row beside row, any strides, packed couplings, numbers, in place: the same bits.
template <class T>
void lie_anywhere(Queue& queue) {
    std::mt19937_64 random(23);
    const std::int64_t part = sizeof(T) == 8 ? 288 : 544;
    for (const std::int64_t n : {std::int64_t{512}, std::int64_t{513}, 2 * part - 1, 2 * part, 2 * part + 1, 4 * part, 4 * part + 1, 4 * part + 33, 8 * part - 1, 8 * part, 8 * part + 1, 13 * part + 5, 16 * part - 31, 16 * part})
        for (const int kind : {static_cast<int>(poisson), static_cast<int>(layers)}) {
            SCOPED_TRACE(testing::Message() << n << " rows, kind " << kind << ", " << sizeof(T) << " bytes");
            OneSystem<T> s = system_of<T>(n, kind, random);
            s.lower.front() = s.upper.back() = std::numeric_limits<T>::quiet_NaN();
            const auto rows = [&](const std::vector<T>& a, std::int64_t stride) { return View<const T>::strided(a.data(), {n, stride}, {}); };
            std::vector<T> x(s.rhs.size());
            tridiagonal::Problem p;
            p.matrix = {rows(s.lower, 1), rows(s.diag, 1), rows(s.upper, 1)}, p.rhs = rows(s.rhs, 1), p.x = View<T>::rows(std::span(x));
            const Outcome outcome = tridiagonal::solve(queue, p);
            ASSERT_TRUE(outcome.ok()) << trifold::name_of(outcome.reason);
            EXPECT_STREQ(outcome.branch, "thomas");
            EXPECT_LE(s.backward_error(x), 20);
            const tridiagonal::Matrix dense = p.matrix;
            const auto expect_same = [&](const char* how, std::int64_t stride, const std::vector<T>* given = nullptr) {
                std::vector<T> there = given ? spread(*given, stride) : std::vector<T>(s.rhs.size() * static_cast<std::size_t>(stride), T{7});
                if (given) p.rhs = View<const T>::strided(there.data(), {n, stride}, {});
                p.x = View<T>::strided(there.data(), {n, stride}, {});
                const Outcome other = tridiagonal::solve(queue, p);
                ASSERT_TRUE(other.ok()) << how;
                for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(there[static_cast<std::size_t>(i * stride)], x[static_cast<std::size_t>(i)]) << how << ", row " << i;
                p.rhs = rows(s.rhs, 1);
            };
            expect_same("x in every other place", 2);
            expect_same("in place", 1, &s.rhs);
            expect_same("in place, in every third place", 3, &s.rhs);
            const std::vector<T> lower = spread(s.lower, 2), diag = spread(s.diag, 3), upper = spread(s.upper, 4), rhs = spread(s.rhs, 2);
            p.matrix = {rows(lower, 2), rows(diag, 3), rows(upper, 4)}, p.rhs = rows(rhs, 2);
            expect_same("strides", 1);
            p.matrix = dense, p.matrix.lower = View<const T>::rows(std::span(s.lower).subspan(1)), p.matrix.upper = View<const T>::rows(std::span(s.upper).first(s.upper.size() - 1));
            expect_same("packed couplings", 1);
            if (kind != poisson) continue;
            p.matrix = {-1.0, 2.0, -1.0};
            expect_same("numbers", 1);
            p.matrix = dense, p.matrix.upper = -1.0;
            expect_same("one number", 1);
        }
}

TEST_F(Runs, ShortOnesWhereverTheyLie) {
    Queue queue(context_, name_);
    lie_anywhere<double>(queue);
    lie_anywhere<float>(queue);
}

// What is not finite in a matrix is not solved, whichever row has it.
TEST_F(Runs, ShortOnesWhoseMatrixIsNotFinite) {
    Queue queue(context_, name_);
    std::mt19937_64 random(8);
    for (const std::int64_t n : {std::int64_t{513}, std::int64_t{2304}, std::int64_t{4321}})
        for (const std::int64_t row : {std::int64_t{1}, n / 2, n - 2})
            for (int operand = 0; operand < 3; ++operand) {
                OneSystem<double> s = system_of<double>(n, poisson, random);
                (operand == 0 ? s.lower : operand == 1 ? s.diag : s.upper)[static_cast<std::size_t>(row)] = std::nan("");
                std::vector<double> x;
                EXPECT_FALSE(solve(queue, s, x, false).ok()) << n << " rows, row " << row << ", operand " << operand;
            }
}

// What is not finite is found wherever it is, and named.
TEST_F(Runs, ShortOnesThatAreNotFinite) {
    Queue queue(context_, name_);
    std::mt19937_64 random(6);
    for (const std::int64_t n : {std::int64_t{513}, std::int64_t{1153}, std::int64_t{4321}})
        for (const std::int64_t row : {std::int64_t{0}, n / 2, n - 1})
            for (const bool in_place : {false, true}) {
                OneSystem<double> s = system_of<double>(n, poisson, random);
                s.rhs[static_cast<std::size_t>(row)] = std::numeric_limits<double>::infinity();
                std::vector<double> x;
                const Outcome outcome = solve(queue, s, x, in_place);
                EXPECT_EQ(outcome.reason, Reason::not_finite) << n << " rows, row " << row;
                EXPECT_EQ(outcome.row, row) << n << " rows";
            }
}

// x is as right as the matrix allows: in FP64 the error of n rows of -1, 2, -1 is far below n^2 roundoffs, which is their condition.
TEST_F(Runs, KeepDigits) {
    Queue queue(context_, name_);
    const std::int64_t n = 400 * run + 77;
    OneSystem<double> s(n);
    std::vector<double> truth(s.rhs.size()), x;
    for (std::size_t i = 0; i < truth.size(); ++i) {
        s.lower[i] = s.upper[i] = -1, s.diag[i] = 2, s.rhs[i] = 1;
        truth[i] = 0.5 * static_cast<double>(i + 1) * static_cast<double>(n - static_cast<std::int64_t>(i));
    }
    const Outcome outcome = solve(queue, s, x, false);
    ASSERT_TRUE(outcome.ok());
    EXPECT_STREQ(outcome.branch, "two_pass");
    double error = 0, largest = 0;
    for (std::size_t i = 0; i < x.size(); ++i) error = std::max(error, std::abs(x[i] - truth[i])), largest = std::max(largest, truth[i]);
    EXPECT_LE(error, 0.01 * 0x1p-53 * static_cast<double>(n) * static_cast<double>(n) * largest);
}

}  // namespace
}  // namespace trifold::tests
