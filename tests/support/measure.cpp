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
    const std::int64_t n = s.rows();
    if (!all_finite(x)) return std::numeric_limits<double>::infinity();
    // Powers of two: the quotient does not change, and no product overflows.
    const double most = std::max(largest(x), 0x1p-1000);
    const double x_scale = std::exp2(-std::ceil(std::log2(most)));
    double matrix = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        const double below = i > 0 || s.periodic ? std::abs(s.lower[i]) : 0, above = i < n - 1 || s.periodic ? std::abs(s.upper[i]) : 0;
        matrix = std::max(matrix, below + std::abs(s.diag[i]) + above);
    }
    std::vector<DoubleDouble> scaled(n);
    for (std::int64_t i = 0; i < n; ++i) scaled[i] = x[i] * x_scale;
    double worst = 0;
    for (std::int64_t i = 0; i < n; ++i)
        worst = std::max(worst, std::abs(static_cast<double>(DoubleDouble(s.rhs[i] * x_scale) - row_times(s, scaled, i))));
    if (worst == 0) return 0;
    return worst / (matrix * most * x_scale + largest(s.rhs) * x_scale);
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
