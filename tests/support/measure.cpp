// SPDX-License-Identifier: BSD-3-Clause
#include "support/measure.hpp"

#include <algorithm>
#include <cmath>
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

TRIFOLD_ALSO_WITH_FMA double backward_error(const Bands<double>& s, const std::vector<double>& x) {
    const std::int64_t n = s.rows(), last = n - 1;
    if (n == 0) return 0;
    if (!all_finite(x)) return std::numeric_limits<double>::infinity();
    // Powers of two: the quotient does not change, and no product overflows.
    const double most = std::max(largest(x), 0x1p-1000);
    const double x_scale = std::exp2(-std::ceil(std::log2(most)));
    std::vector<double> scaled(n), sums(n), residual(n);
    for (std::int64_t i = 0; i < n; ++i) scaled[i] = x[i] * x_scale;
    // Row i of A has `below` before its diagonal and `above` behind it. Products of numbers are double-doubles as they are.
    const double *const lower = s.lower.data(), *const diag = s.diag.data(), *const upper = s.upper.data(), *const rhs = s.rhs.data(), *const y = scaled.data();
    const auto measure = [=, sum = sums.data(), rest = residual.data()](std::int64_t i, double below, std::int64_t before, double above, std::int64_t after) {
        sum[i] = std::abs(below) + std::abs(diag[i]) + std::abs(above);
        const DoubleDouble row = two_product(diag[i], y[i]) + two_product(below, y[before]) + two_product(above, y[after]);
        rest[i] = static_cast<double>(DoubleDouble(rhs[i] * x_scale) - row);
    };
    const double first_below = s.periodic ? lower[0] : 0, last_above = s.periodic ? upper[last] : 0;
    measure(0, first_below, last, last > 0 ? upper[0] : last_above, last > 0 ? 1 : 0);
    for (std::int64_t i = 1; i < last; ++i) measure(i, lower[i], i - 1, upper[i], i + 1);
    if (last > 0) measure(last, lower[last], last - 1, last_above, 0);
    const double worst = largest(residual);
    if (worst == 0) return 0;
    return worst / (largest(sums) * most * x_scale + largest(s.rhs) * x_scale);
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
