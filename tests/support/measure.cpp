// SPDX-License-Identifier: BSD-3-Clause
#include "support/measure.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

namespace trifold::tests {

bool all_finite(const std::vector<double>& x) {
    return std::ranges::all_of(x, [](double value) { return std::isfinite(value); });
}

double largest(const std::vector<double>& x) {
    double most = 0;
    for (const double value : x) most = std::max(most, std::abs(value));
    return most;
}

namespace {

// Of the largest finite value.
int exponent(std::initializer_list<const std::vector<double>*> all) {
    constexpr int least = -900;  // so that its negative is the exponent of a double
    double most = 0;
    for (const std::vector<double>* const values : all)
        for (const double value : *values)
            if (std::isfinite(value)) most = std::max(most, std::abs(value));
    return most > 0 ? std::max(std::ilogb(most), least) : least;
}

}  // namespace

TRIFOLD_ALSO_WITH_FMA double backward_error(const Bands<double>& s, const std::vector<double>& x) {
    const std::int64_t n = s.rows(), last = n - 1;
    if (n == 0) return 0;
    if (!all_finite(x)) return std::numeric_limits<double>::infinity();
    // Powers of two, so that A, x and the larger of A x and rhs are about 1: the quotient does not change, and nothing overflows.
    const int a_exponent = exponent({&s.lower, &s.diag, &s.upper}), x_exponent = exponent({&x});
    const int all = std::max(a_exponent + x_exponent, exponent({&s.rhs}));
    const double a_scale = std::ldexp(1.0, -a_exponent), x_scale = std::ldexp(1.0, -x_exponent), both_scale = std::ldexp(1.0, a_exponent + x_exponent - all), rhs_scale = std::ldexp(1.0, -all);
    std::vector<double> scaled(n), sums(n), residual(n);
    for (std::int64_t i = 0; i < n; ++i) scaled[i] = x[i] * x_scale * both_scale;
    // Row i of A has `below` before its diagonal and `above` behind it. Products of numbers are double-doubles as they are.
    const double *const lower = s.lower.data(), *const diag = s.diag.data(), *const upper = s.upper.data(), *const rhs = s.rhs.data(), *const y = scaled.data();
    const auto measure = [=, sum = sums.data(), rest = residual.data()](std::int64_t i, double below, std::int64_t before, double above, std::int64_t after) {
        const double a = below * a_scale, b = diag[i] * a_scale, c = above * a_scale;
        sum[i] = std::abs(a) + std::abs(b) + std::abs(c);
        const DoubleDouble row = two_product(b, y[i]) + two_product(a, y[before]) + two_product(c, y[after]);
        rest[i] = static_cast<double>(DoubleDouble(rhs[i] * rhs_scale) - row);
    };
    const double first_below = s.periodic ? lower[0] : 0, last_above = s.periodic ? upper[last] : 0;
    measure(0, first_below, last, last > 0 ? upper[0] : last_above, last > 0 ? 1 : 0);
    for (std::int64_t i = 1; i < last; ++i) measure(i, lower[i], i - 1, upper[i], i + 1);
    if (last > 0) measure(last, lower[last], last - 1, last_above, 0);
    // Of a matrix or right-hand side with infinities, rows that have them are not counted.
    const bool counted = all_finite(residual) || !(all_finite(s.lower) && all_finite(s.diag) && all_finite(s.upper) && all_finite(s.rhs));
    if (!counted) return std::numeric_limits<double>::infinity();
    const double worst = largest(residual);
    if (worst == 0) return 0;
    return worst / (largest(sums) * largest(scaled) + largest(s.rhs) * rhs_scale);
}

double forward_error(const std::vector<double>& x, const std::vector<DoubleDouble>& truth) {
    double most = 0;
    for (const DoubleDouble value : truth) most = std::max(most, std::abs(value.hi));
    if (most == 0) most = 1;
    double error = 0, norm = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double difference = static_cast<double>(DoubleDouble(x[i]) - truth[i]) / most, value = truth[i].hi / most;
        error += difference * difference;
        norm += value * value;
    }
    return error == 0 ? 0 : std::sqrt(error / norm);
}

double largest_error(const std::vector<double>& x, const std::vector<DoubleDouble>& truth) {
    double most = 0;
    for (std::size_t i = 0; i < x.size(); ++i) most = std::max(most, std::abs(static_cast<double>(DoubleDouble(x[i]) - truth[i])));
    return most;
}

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

}  // namespace trifold::tests
