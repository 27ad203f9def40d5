// SPDX-License-Identifier: BSD-3-Clause
// So many columns with one matrix, of more rows than a block has, that they are walked down first and held in bands only where that does not do: what forgets and what does not, what needs
// pivots, right-hand sides that are not finite, and columns that do not make full turns of all warps.
#include <cmath>
#include <limits>
#include <random>

#include "cuda/gpu.hpp"

namespace trifold::tests {
namespace {

class ManyColumns : public OnGpu {};

template <class T>
struct OneMatrix {
    std::int64_t rows, columns;
    std::vector<T> lower, diag, upper, rhs, x;
    std::vector<std::int8_t> status;

    OneMatrix(std::int64_t rows, std::int64_t columns, double more, std::mt19937_64& random)
        : rows(rows), columns(columns), lower(rows), diag(rows), upper(rows), rhs(rows * columns), x(rhs.size()), status(columns) {
        std::uniform_real_distribution<double> any(-1, 1);
        for (std::int64_t i = 0; i < rows; ++i) {
            lower[i] = static_cast<T>(-1 - 0.5 * any(random)), upper[i] = static_cast<T>(-1 - 0.5 * any(random));
            diag[i] = static_cast<T>(-static_cast<double>(lower[i]) - upper[i] + more);
        }
        for (std::size_t k = 0; k < rhs.size(); ++k) rhs[k] = static_cast<T>(static_cast<std::int64_t>(random() % 2001) - 1000) / 1000;
    }

    T& right(std::int64_t row, std::int64_t column) { return rhs[row * columns + column]; }

    Outcome solve(Queue& queue) {
        const DeviceArray<T> a(queue, std::span<const T>(lower)), b(queue, std::span<const T>(diag)), c(queue, std::span<const T>(upper)), f(queue, std::span<const T>(rhs));
        DeviceArray<T> to(queue, std::span<const T>(rhs));
        tridiagonal::Problem problem;
        const auto band = [&](const DeviceArray<T>& of) { return View<const T>::rows(std::span<const T>(of.data(), static_cast<std::size_t>(rows))); };
        problem.matrix.lower = band(a), problem.matrix.diag = band(b), problem.matrix.upper = band(c);
        problem.rhs = View<const T>::interleaved(f.data(), rows, columns), problem.x = View<T>::interleaved(to.data(), rows, columns);
        tridiagonal::Options options;
        options.status = status.data();
        const Outcome outcome = tridiagonal::solve(queue, problem, options);
        to.download(std::span<T>(x));
        return outcome;
    }

    /// What is left of a column's equations, in roundings of max|A| max|x|.
    double left(std::int64_t k) const {
        double worst = 0, size = 0, largest = 0;
        for (std::int64_t i = 0; i < rows; ++i) {
            const auto at = [&](std::int64_t j) { return static_cast<double>(x[j * columns + k]); };
            double r = static_cast<double>(rhs[i * columns + k]) - static_cast<double>(diag[i]) * at(i), m = std::abs(static_cast<double>(diag[i]));
            if (i > 0) r -= static_cast<double>(lower[i]) * at(i - 1), m += std::abs(static_cast<double>(lower[i]));
            if (i + 1 < rows) r -= static_cast<double>(upper[i]) * at(i + 1), m += std::abs(static_cast<double>(upper[i]));
            worst = std::max(worst, std::isfinite(r) ? std::abs(r) : std::numeric_limits<double>::infinity()), size = std::max(size, m), largest = std::max(largest, std::abs(at(i)));
        }
        return worst / (size * largest) / unit_roundoff(dtype_of<T>);
    }
    void expect_solved() const {
        for (std::int64_t k = 0; k < columns; k += k < 600 || k + 600 > columns ? 1 : 7)
            if (status[k] >= 0) {
                ASSERT_LE(left(k), 20) << "column " << k;
            }
    }
};

/// A little more than 2^25 elements, rows of whole pieces of 256 bytes, or of whole sectors, so that a last tile has few columns.
template <class T>
constexpr std::int64_t columns_of(std::int64_t rows, bool pieces) {
    constexpr std::int64_t piece = 256 / sizeof(T), sector = 32 / sizeof(T);
    const std::int64_t whole = ((std::int64_t{1} << 25) / rows + piece) / piece * piece;
    return pieces ? whole : whole + sector;
}

template <class T>
void forget_or_not(Queue& queue) {
    std::mt19937_64 random(41);
    for (const std::int64_t rows : {1025, 1280, 1999, 2048})
        for (const double more : {2.0, 1e-2, 0.0}) {
            SCOPED_TRACE(testing::Message() << rows << " rows, " << more << " more, " << name_of(dtype_of<T>));
            OneMatrix<T> s(rows, columns_of<T>(rows, rows % 2 == 0), more, random);
            const Outcome outcome = s.solve(queue);
            ASSERT_TRUE(outcome.ok()) << name_of(outcome.reason);
            EXPECT_EQ(outcome.rescued, 0);
            s.expect_solved();
            const std::vector<T> first = s.x;
            s.solve(queue);
            EXPECT_TRUE(s.x == first) << "the same bits again";
            if (testing::Test::HasFailure()) return;
        }
}

TEST_F(ManyColumns, ThatForgetOrNot) {
    forget_or_not<double>(*queue);
    forget_or_not<float>(*queue);
}

template <class T>
void one_pivot(Queue& queue) {
    std::mt19937_64 random(42);
    OneMatrix<T> s(1100, columns_of<T>(1100, true), 1, random);
    s.diag[500] = 0;
    const Outcome outcome = s.solve(queue);
    ASSERT_TRUE(outcome.ok()) << name_of(outcome.reason);
    s.expect_solved();
}

TEST_F(ManyColumns, ThatNeedPivots) {
    one_pivot<double>(*queue);
    one_pivot<float>(*queue);
}

template <class T>
void not_finite(Queue& queue, double more) {
    SCOPED_TRACE(testing::Message() << more << " more, " << name_of(dtype_of<T>));
    std::mt19937_64 random(43);
    OneMatrix<T> s(1500, columns_of<T>(1500, false), more, random);
    const auto bad = [&](std::int64_t k) { return k % 997 == 5 || k % 640 == 63 || k + 1 == s.columns; };
    std::int64_t failures = 0;
    for (std::int64_t k = 0; k < s.columns; ++k)
        if (bad(k)) s.right(k % 3 == 0 ? 0 : k % 3 == 1 ? s.rows - 1 : k % s.rows, k) = k % 2 ? std::numeric_limits<T>::quiet_NaN() : std::numeric_limits<T>::infinity(), ++failures;
    const Outcome outcome = s.solve(queue);
    EXPECT_EQ(outcome.reason, Reason::not_finite);
    EXPECT_EQ(outcome.system, 5);
    EXPECT_EQ(outcome.failures, failures);
    for (std::int64_t k = 0; k < s.columns; ++k) ASSERT_EQ(s.status[k] < 0, bad(k)) << "column " << k;
    s.expect_solved();
}

TEST_F(ManyColumns, OfWhichSomeAreNotFinite) {
    for (const double more : {2.0, 0.0}) not_finite<double>(*queue, more), not_finite<float>(*queue, more);
}

}  // namespace
}  // namespace trifold::tests
