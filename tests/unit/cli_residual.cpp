// SPDX-License-Identifier: BSD-3-Clause
#include "cli/residual.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "io/tridiagonal_data.hpp"

namespace trifold::cli {
namespace {

// The definition, element by element, with every index computed the slow way.
template <class T>
BackwardError plain(const io::TridiagonalData& data, const io::Array& x) {
    const AnyView rhs = data.rhs.view(data.axis, false);
    const std::int64_t n = rhs.rows(), systems = rhs.systems();
    const auto value = [&](const io::Array& array, std::int64_t system, std::int64_t i) -> long double {
        AnyView view = array.view(array.dims() == 1 ? 0 : data.axis, false);
        std::int64_t at = i * view.axis.stride;
        for (int d = view.batch_dims - 1; d >= 0; --d) {
            at += system % view.batch[d].extent * view.batch[d].stride;
            system /= view.batch[d].extent;
        }
        return static_cast<const T*>(view.data)[at];
    };
    BackwardError worst;
    for (std::int64_t s = 0; s < systems; ++s) {
        long double r = 0, a = 0, m = 0, b = 0;
        std::int64_t row = -1;
        for (std::int64_t i = 0; i < n; ++i) {
            const long double l = i > 0 ? value(data.lower, s, i) : 0, u = i + 1 < n ? value(data.upper, s, i) : 0,
                              d = value(data.diag, s, i);
            const long double here =
                std::fabs(value(data.rhs, s, i) - d * value(x, s, i) - (i > 0 ? l * value(x, s, i - 1) : 0) -
                          (i + 1 < n ? u * value(x, s, i + 1) : 0));
            if (here > r) r = here, row = i;
            a = std::max(a, std::fabs(l) + std::fabs(d) + std::fabs(u));
            m = std::max(m, std::fabs(value(x, s, i)));
            b = std::max(b, std::fabs(value(data.rhs, s, i)));
        }
        const double error = static_cast<double>(r / (a * m + b));
        if (worst.system < 0 || error > worst.worst) worst = {error, s, row};
    }
    return worst;
}

template <class T>
void compare(const std::string& input) {
    io::LoadOptions options;
    options.precision = dtype_of<T>;
    const io::TridiagonalData data = io::load_tridiagonal(input, options);
    io::Array x(data.rhs.shape(), "x");
    for (std::int64_t i = 0; i < x.shape().elements(); ++i)
        x.as<T>()[i] = static_cast<T>(3 + std::sin(static_cast<double>(i)));
    const BackwardError expected = plain<T>(data, x);
    for (const int threads : {1, 3}) {
        const BackwardError found = backward_error(data.problem(x), threads);
        EXPECT_NEAR(found.worst, expected.worst, 1e-12 * expected.worst) << input;
        EXPECT_EQ(found.system, expected.system) << input;
        EXPECT_EQ(found.row, expected.row) << input;
    }
}

TEST(BackwardError, EqualsItsDefinition) {
    for (const char* input :
         {"gen:random?rows=1", "gen:random?rows=2", "gen:random?rows=50000", "gen:random?rows=70&systems=33",
          "gen:random?shape=5x40x130&axis=1", "gen:random?shape=40x5x13&axis=0",
          "gen:dominant?rows=30&systems=20&matrix=shared", "gen:random?shape=3x4x5x6x7&axis=2"}) {
        compare<double>(input);
        compare<float>(input);
    }
}

TEST(BackwardError, NotANumberIsNeverSmall) {
    for (const char* input :
         {"gen:poisson?rows=100", "gen:poisson?rows=10&systems=100", "gen:poisson?shape=10x100&axis=0"}) {
        const io::TridiagonalData data = io::load_tridiagonal(input);
        io::Array x(data.rhs.shape(), "x");
        for (std::int64_t i = 0; i < x.shape().elements(); ++i) x.as<double>()[i] = 1;
        x.as<double>()[57] = std::nan("");
        EXPECT_TRUE(std::isnan(backward_error(data.problem(x), 2).worst)) << input;
    }
}

TEST(BackwardError, PackedAndScalarCoefficients) {
    const double lower[] = {2, 3}, diag[] = {5, 6, 7}, upper[] = {1, 4};
    double x[] = {1, 2, 3}, rhs[] = {5 + 2, 2 + 12 + 12, 6 + 21};
    tridiagonal::Problem problem;
    problem.matrix = {View<const double>::rows(lower), View<const double>::rows(diag), View<const double>::rows(upper)};
    problem.rhs = View<const double>::rows(rhs);
    problem.x = View<double>::rows(x);
    EXPECT_EQ(backward_error(problem, 1).worst, 0);
    problem.matrix = {1.0, 2.0, -1.0};
    rhs[0] = 0, rhs[1] = 2, rhs[2] = 8;
    EXPECT_EQ(backward_error(problem, 1).worst, 0);
    rhs[2] = 9;
    EXPECT_DOUBLE_EQ(backward_error(problem, 1).worst, 1.0 / (4 * 3 + 9));
}

}  // namespace
}  // namespace trifold::cli
