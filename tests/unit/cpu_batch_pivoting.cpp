// SPDX-License-Identifier: BSD-3-Clause
// Batches in which some systems need pivoting, are singular, or hold NaN: each is found, rescued or named, its neighbours' bits
// do not change, and what failed keeps its right-hand side.
#include "unit/cpu_batch.hpp"

#include <functional>

#include "support/measure.hpp"
#include "support/random.hpp"

namespace trifold::cpu::test {
namespace {

template <class T>
class CpuBatchPivoting : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(CpuBatchPivoting, Types);

constexpr std::int64_t systems = 70;

// Kinds by system number: 0 dominant, 1 random, 2 tiny diagonal, 3 zero diagonal (even n), 4 singular in the middle,
// 5 NaN in rhs, 6 infinite diagonal, 7 a zero pivot on the way.
template <class T>
void mixed(Batch<T>& b, unsigned seed, const std::function<int(std::int64_t)>& kind) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> u(-1, 1);
    const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
    b.fill([&](int w, std::int64_t i, std::int64_t j, std::int64_t k) {
        const int what = kind(j * b.inner + k);
        const double v = u(random);
        const T small = static_cast<T>(sizeof(T) == 8 ? 1e-8 : 1e-4);
        if (what == 0) return static_cast<T>(w == 1 ? 3 + v : v);
        if (what == 2 && w != 3) return w == 1 ? small : T(1);
        if (what == 3 && w == 1) return T(0);
        if (what == 4 && w != 3 && (i == b.rows / 2)) return T(0);
        if (what == 5 && w == 3 && i == b.rows / 3) return nan;
        if (what == 6 && w == 1 && i == b.rows / 3) return inf;
        if (what == 7 && w == 1) return i == 0 ? T(0) : static_cast<T>(3 + v);
        return static_cast<T>(what >= 4 && w == 1 ? 3 + v : v);
    });
}

template <class T>
void check(Batch<T>& b, const std::vector<T>& rhs, const std::vector<std::int8_t>& status, const std::function<int(std::int64_t)>& kind) {
    for (std::int64_t s = 0; s < b.outer * b.inner; ++s) {
        const std::int64_t j = s / b.inner, k = s % b.inner;
        const int what = kind(s);
        SCOPED_TRACE(testing::Message() << "system " << s << " kind " << what);
        const Reason expected = what == 4 ? Reason::singular : what == 5 || what == 6 ? Reason::not_finite : Reason::exact;
        ASSERT_EQ(status[s], static_cast<std::int8_t>(expected));
        if (expected == Reason::exact) {
            const std::vector<T> gtsv = truth<T>(b, j, k, rhs);
            ASSERT_LE(backward_error(b, j, k, rhs), 10 * backward_error(b, j, k, rhs, &gtsv) + unit_roundoff(dtype_of<T>));
        } else if (b.system.in_place)
            for (std::int64_t i = 0; i < b.rows; ++i) {
                const T now = *b.solution(i, j, k), then = rhs[s * b.rows + i];
                ASSERT_TRUE(now == then || (now != now && then != then)) << i;
            }
    }
}

TYPED_TEST(CpuBatchPivoting, RescuesAndNames) {
    using T = TypeParam;
    on_every_target([] {
        for (Layout layout : {Layout::contiguous, Layout::interleaved, Layout::scattered})
            for (std::int64_t n : {6, 64, 250, 3000})
                for (bool in_place : {true, false})
                    for (int pattern : {0, 1}) {
                        SCOPED_TRACE(testing::Message() << name_of(layout) << " n " << n << (in_place ? " in place" : "") << " pattern " << pattern);
                        const auto kind = [pattern, n](std::int64_t s) {
                            const int what = pattern == 0 ? static_cast<int>(s * 5 % 8) : (s % 23 == 4 ? static_cast<int>(s / 23 + 1) : 0);
                            return n > 1000 && what == 3 ? 1 : what;  // whose x leaves the range of float
                        };
                        Batch<T> b(layout, n, 1, systems, 1, 0, in_place);
                        mixed(b, static_cast<unsigned>(n), kind);
                        const auto rhs = kept_rhs(b);
                        std::vector<std::int8_t> status;
                        const Outcome outcome = run(b, Algorithm::automatic, 1, &status);
                        check(b, rhs, status, kind);
                        std::int64_t failures = 0, first = -1;
                        for (std::int64_t s = 0; s < systems; ++s)
                            if (status[s] < 0) first = failures++ == 0 ? s : first;
                        EXPECT_EQ(outcome.failures, failures);
                        EXPECT_EQ(outcome.system, first);
                        EXPECT_GT(outcome.rescued, 0);
                        EXPECT_EQ(static_cast<std::int8_t>(outcome.reason), first >= 0 ? status[first] : 1);
                    }
    });
}

// A good system next to one that is redone has the bits that it has alone.
TYPED_TEST(CpuBatchPivoting, NeighboursKeepTheirBits) {
    using T = TypeParam;
    on_every_target([] {
        const auto good = [](std::int64_t) { return 0; };
        Batch<T> a(Layout::contiguous, 200, 1, systems, 0, 0, false), b(Layout::contiguous, 200, 1, systems, 0, 0, false);
        mixed(a, 3, good), mixed(b, 3, good);
        for (std::int64_t i = 0; i < 200; ++i) b.diag.at(i, 0, 11) = T(1e-3);
        EXPECT_EQ(run(a).rescued, 0);
        EXPECT_EQ(run(b).rescued, 1);
        for (std::int64_t k = 0; k < systems; ++k)
            for (std::int64_t i = 0; i < 200; ++i)
                ASSERT_TRUE(k == 11 || *a.solution(i, 0, k) == *b.solution(i, 0, k));
    });
}

// Every pivot and the eliminated right-hand side are finite, and x is not: it shows when x is there. The system is named; in place its right-hand side is lost (batch.hpp), apart it is as it was.
TYPED_TEST(CpuBatchPivoting, AnXThatOverflowsIsNamed) {
    using T = TypeParam;
    on_every_target([] {
        constexpr std::int64_t n = 150, bad = 11;
        for (Layout layout : {Layout::contiguous, Layout::interleaved, Layout::scattered})
            for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::lu})
                for (bool in_place : {true, false}) {
                    SCOPED_TRACE(testing::Message() << name_of(layout) << ", algorithm " << static_cast<int>(algorithm) << (in_place ? ", in place" : ""));
                    Batch<T> b(layout, n, 1, systems, 1, 0, in_place);
                    mixed(b, 5, [](std::int64_t) { return 0; });
                    for (std::int64_t i = 0; i < n; ++i) b.lower.at(i, 0, bad) = 0, b.diag.at(i, 0, bad) = 1, b.upper.at(i, 0, bad) = 1000, b.rhs.at(i, 0, bad) = 1;
                    const auto rhs = kept_rhs(b);
                    std::vector<std::int8_t> status;
                    const Outcome outcome = run(b, algorithm, 1, &status);
                    EXPECT_EQ(outcome.reason, Reason::not_finite);
                    EXPECT_EQ(outcome.system, bad);
                    EXPECT_EQ(outcome.failures, 1);
                    for (std::int64_t k = 0; k < systems; ++k) {
                        ASSERT_EQ(status[k], static_cast<std::int8_t>(k == bad ? Reason::not_finite : Reason::exact)) << k;
                        for (std::int64_t i = 0; i < n && !in_place; ++i) ASSERT_EQ(b.rhs.at(i, 0, k), rhs[k * n + i]);
                        if (k == bad) continue;
                        const std::vector<T> gtsv = truth<T>(b, 0, k, rhs);
                        ASSERT_LE(backward_error(b, 0, k, rhs), 10 * backward_error(b, 0, k, rhs, &gtsv) + unit_roundoff(dtype_of<T>));
                    }
                }
    });
}

// Too long for scratch: what fails is left to scalar code, after the others were stored.
TYPED_TEST(CpuBatchPivoting, SegmentedSystems) {
    using T = TypeParam;
    const std::int64_t n = 131072 + 77;
    const auto kind = [](std::int64_t s) { return s == 2 ? 7 : s == 5 ? 4 : s == 8 ? 5 : 0; };
    for (Layout layout : {Layout::contiguous, Layout::interleaved}) {
        Batch<T> b(layout, n, 1, 11, 1, 0, true);
        mixed(b, 4, kind);
        const auto rhs = kept_rhs(b);
        std::vector<std::int8_t> status;
        const Outcome outcome = run(b, Algorithm::automatic, 2, &status);
        check(b, rhs, status, kind);
        EXPECT_EQ(outcome.rescued, 1);
        EXPECT_EQ(outcome.failures, 2);
        EXPECT_EQ(outcome.system, 5);
        EXPECT_EQ(outcome.row, n - 1);  // the exchanges carry the row of zeros to the end, as in ?gtsv
    }
}

// Pivots of 1 to 1e-3 after a row of ones: what loses digits is called unstable, and what is called exact is good.
TYPED_TEST(CpuBatchPivoting, ThomasByNameIsExactOrRefused) {
    using T = TypeParam;
    on_every_target([] {
        constexpr std::int64_t rows = 3, many = 600;
        std::vector<T> lower(rows * many), diag(rows * many), upper(rows * many), rhs(rows * many), x(rows * many);
        tests::Random random(3);
        for (std::int64_t i = 0; i < rows * many; ++i) {
            for (std::vector<T>* band : {&lower, &diag, &upper}) (*band)[i] = static_cast<T>(random.uniform(-1, 1) * std::pow(10, random.uniform(-3, 3)));
            rhs[i] = static_cast<T>(random.normal(0, 1));
        }
        const auto view = [](std::vector<T>& v) { return View<T>::interleaved(v.data(), rows, many); };
        tridiagonal::Problem problem;
        problem.matrix = {AnyView(view(lower)), AnyView(view(diag)), AnyView(view(upper))};
        problem.rhs = view(rhs), problem.x = view(x);
        std::vector<std::int8_t> status(many);
        tridiagonal::Options options;
        options.algorithm = Algorithm::thomas, options.status = status.data();
        Context context({.threads = 1, .profile_path = "none", .log = {}});
        Queue queue(context, "cpu");
        const Outcome outcome = tridiagonal::solve(queue, problem, options);
        EXPECT_STREQ(outcome.device, "cpu");
        EXPECT_GT(outcome.failures, 0);
        EXPECT_LT(outcome.failures, many / 2);
        for (std::int64_t k = 0; k < many; ++k) {
            if (status[k] < 0) continue;
            tests::Bands<double> s(rows);
            std::vector<double> got(rows);
            for (std::int64_t i = 0; i < rows; ++i)
                s.lower[i] = lower[i * many + k], s.diag[i] = diag[i * many + k], s.upper[i] = upper[i * many + k], s.rhs[i] = rhs[i * many + k], got[i] = x[i * many + k];
            EXPECT_LE(tests::backward_error(s, got), 20 * unit_roundoff(dtype_of<T>)) << "system " << k;
        }
    });
}

TYPED_TEST(CpuBatchPivoting, ByName) {
    using T = TypeParam;
    on_every_target([] {
        for (std::int64_t n : {5, 100, 5000}) {
            const auto random = [n](std::int64_t s) { return static_cast<int>(s % (n > 1000 ? 3 : 4)); };
            Batch<T> b(Layout::interleaved, n - n % 2, 1, systems, 1, 0, true);
            mixed(b, 8, random);
            const auto rhs = kept_rhs(b);
            std::vector<std::int8_t> status;
            const Outcome outcome = run(b, Algorithm::lu, 2, &status);
            EXPECT_EQ(outcome.reason, Reason::exact);
            EXPECT_STREQ(outcome.branch, "lu");
            EXPECT_EQ(outcome.rescued, 0);
            check(b, rhs, status, random);

            Batch<T> c(Layout::interleaved, n - n % 2, 1, systems, 1, 0, true);
            mixed(c, 8, [](std::int64_t s) { return s == 9 ? 3 : 0; });
            const auto kept = kept_rhs(c);
            const Outcome refused = run(c, Algorithm::thomas, 1, &status);
            EXPECT_EQ(refused.reason, Reason::unstable);
            EXPECT_EQ(refused.system, 9);
            EXPECT_EQ(refused.failures, 1);
            for (std::int64_t s = 0; s < systems; ++s) EXPECT_EQ(status[s], static_cast<std::int8_t>(s == 9 ? Reason::unstable : Reason::exact));
            for (std::int64_t i = 0; i < c.rows; ++i) EXPECT_EQ(*c.solution(i, 0, 9), kept[9 * c.rows + i]);
        }
    });
}

}  // namespace
}  // namespace trifold::cpu::test
