// SPDX-License-Identifier: BSD-3-Clause
// Batches of so many columns side by side that some of them are looked at before a kernel is chosen: what is looked at may be like all others, or not.
#include <cmath>
#include <limits>
#include <optional>
#include <random>

#include "cuda/gpu.hpp"

namespace trifold::tests {
namespace {

class JudgedColumns : public OnGpu {};

enum class Kind { dominant, convection, waves, random };

/// [planes][rows][columns], a kind for each column.
template <class T>
struct Batch {
    std::int64_t planes, rows, columns;
    std::vector<T> lower, diag, upper, rhs, x;
    std::vector<std::int8_t> status;

    template <class KindOf>
    Batch(std::int64_t planes, std::int64_t rows, std::int64_t columns, KindOf kind_of)
        : planes(planes), rows(rows), columns(columns), lower(planes * rows * columns), diag(lower.size()), upper(lower.size()), rhs(lower.size()), x(lower.size()), status(planes * columns) {
        std::mt19937 random(static_cast<unsigned>(rows));
        const auto any = [&] { return static_cast<T>(random()) * static_cast<T>(0x1p-31) - T(1); };
        for (std::int64_t p = 0; p < planes; ++p)
            for (std::int64_t i = 0; i < rows; ++i)
                for (std::int64_t c = 0; c < columns; ++c) {
                    const std::size_t k = place(p, i, c);
                    rhs[k] = any();
                    switch (kind_of(p * columns + c)) {
                        case Kind::dominant: lower[k] = any(), upper[k] = any(), diag[k] = T(3) + any() / 2; break;
                        case Kind::convection: lower[k] = T(-2.5), diag[k] = T(2), upper[k] = T(0.5); break;
                        case Kind::waves: lower[k] = upper[k] = T(-1), diag[k] = T(0.7); break;
                        case Kind::random: lower[k] = any(), upper[k] = any(), diag[k] = any(); break;
                    }
                }
    }

    std::size_t place(std::int64_t plane, std::int64_t row, std::int64_t column) const { return static_cast<std::size_t>((plane * rows + row) * columns + column); }

    Outcome solve(Queue& queue, bool in_place) {
        const DeviceArray<T> a(queue, std::span<const T>(lower)), b(queue, std::span<const T>(diag)), c(queue, std::span<const T>(upper));
        DeviceArray<T> f(queue, std::span<const T>(rhs));
        std::optional<DeviceArray<T>> other;
        if (!in_place) other.emplace(queue, std::span<const T>(rhs));
        DeviceArray<T>& to = in_place ? f : *other;
        const auto view = [&]<class U>(U* data) {
            const Dim batch[] = {{planes, rows * columns}, {columns, 1}};
            return View<U>::strided(data, {rows, columns}, batch, f.memory());
        };
        tridiagonal::Problem problem;
        problem.matrix.lower = view(a.data()), problem.matrix.diag = view(b.data()), problem.matrix.upper = view(c.data());
        problem.rhs = view(f.data()), problem.x = view(to.data());
        tridiagonal::Options options;
        options.status = status.data();
        const Outcome outcome = tridiagonal::solve(queue, problem, options);
        to.download(std::span<T>(x));
        return outcome;
    }

    /// What is left of a column's equations, in roundings of max|A| max|x|.
    double left(std::int64_t p, std::int64_t c) const {
        double worst = 0, size = 0, largest = 0;
        for (std::int64_t i = 0; i < rows; ++i) {
            const auto at = [&](const std::vector<T>& of, std::int64_t j) { return static_cast<double>(of[place(p, j, c)]); };
            double r = at(rhs, i) - at(diag, i) * at(x, i), m = std::abs(at(diag, i));
            if (i > 0) r -= at(lower, i) * at(x, i - 1), m += std::abs(at(lower, i));
            if (i + 1 < rows) r -= at(upper, i) * at(x, i + 1), m += std::abs(at(upper, i));
            worst = std::max(worst, std::isfinite(r) ? std::abs(r) : std::numeric_limits<double>::infinity()), size = std::max(size, m), largest = std::max(largest, std::abs(at(x, i)));
        }
        return worst / (size * largest) / unit_roundoff(dtype_of<T>);
    }
    void expect_solved() const {
        for (std::int64_t k = 0; k < planes * columns; k += k % columns < 300 || k % columns + 300 > columns ? 1 : 7)
            if (status[k] >= 0) {
                ASSERT_LE(left(k / columns, k % columns), 40) << "column " << k;
            }
    }
};

constexpr std::int64_t in_all = (std::int64_t{1} << 22) + (1 << 16);

template <class T, class KindOf>
void solve(Queue& queue, const char* what, std::int64_t planes, std::int64_t rows, KindOf kind_of) {
    const std::int64_t columns = in_all / (planes * rows) + 5;
    Batch<T> batch(planes, rows, columns, [&](std::int64_t k) { return kind_of(static_cast<double>(k) / static_cast<double>(planes * columns), k); });
    for (const bool in_place : {false, true}) {
        SCOPED_TRACE(testing::Message() << what << ", " << planes << " planes of " << rows << " rows and " << columns << " columns, in place " << in_place << ", " << name_of(dtype_of<T>));
        const Outcome outcome = batch.solve(queue, in_place);
        ASSERT_TRUE(outcome.ok()) << name_of(outcome.reason);
        batch.expect_solved();
        if (testing::Test::HasFailure()) return;
        const std::vector<T> first = batch.x;
        batch.solve(queue, in_place);
        EXPECT_TRUE(batch.x == first) << "the same bits again";
    }
}

template <class T>
void kinds(Queue& queue, std::int64_t planes, std::int64_t rows) {
    const auto all = [](Kind kind) { return [kind](double, std::int64_t) { return kind; }; };
    solve<T>(queue, "dominant", planes, rows, all(Kind::dominant)), solve<T>(queue, "convection", planes, rows, all(Kind::convection));
    solve<T>(queue, "waves", planes, rows, all(Kind::waves)), solve<T>(queue, "random", planes, rows, all(Kind::random));
    solve<T>(queue, "dominant, then convection", planes, rows, [](double part, std::int64_t) { return part < 0.7 ? Kind::dominant : Kind::convection; });
    solve<T>(queue, "waves, then dominant", planes, rows, [](double part, std::int64_t) { return part < 0.5 ? Kind::waves : Kind::dominant; });
    solve<T>(queue, "some of all", planes, rows, [](double, std::int64_t k) { return static_cast<Kind>(k * 2654435761u % 1013 % 4); });
    solve<T>(queue, "few random ones", planes, rows, [](double, std::int64_t k) { return k % 101 == 17 ? Kind::random : Kind::dominant; });
}

TEST_F(JudgedColumns, OfEveryKindF64) {
    kinds<double>(*queue, 1, 129), kinds<double>(*queue, 3, 300), kinds<double>(*queue, 1, 1030), kinds<double>(*queue, 1, 4100);
}
TEST_F(JudgedColumns, OfEveryKindF32) {
    kinds<float>(*queue, 1, 129), kinds<float>(*queue, 3, 300), kinds<float>(*queue, 1, 1030), kinds<float>(*queue, 1, 4100);
}

TEST_F(JudgedColumns, FailAlone) {
    for (const Kind kind : {Kind::dominant, Kind::convection, Kind::random}) {
        Batch<double> batch(1, 200, in_all / 200, [&](std::int64_t) { return kind; });
        const auto bad = [&](std::int64_t k) { return k % 997 == 5 || k + 1 == batch.columns; };
        std::int64_t failures = 0;
        for (std::int64_t k = 0; k < batch.columns; ++k)
            if (bad(k)) batch.rhs[batch.place(0, k % 200, k)] = k % 2 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity(), ++failures;
        const Outcome outcome = batch.solve(*queue, false);
        EXPECT_EQ(outcome.reason, Reason::not_finite);
        EXPECT_EQ(outcome.system, 5);
        EXPECT_EQ(outcome.failures, failures);
        for (std::int64_t k = 0; k < batch.columns; ++k) ASSERT_EQ(batch.status[k] < 0, bad(k)) << "column " << k;
        batch.expect_solved();
    }
}

}  // namespace
}  // namespace trifold::tests
