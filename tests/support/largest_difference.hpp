// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <limits>
#include <span>
#include <vector>

namespace trifold::tests {

/// Infinite where one of them is not finite.
template <class T>
double largest_difference(std::span<const T> ours, std::span<const T> expected) {
    double off = 0;
    for (std::size_t k = 0; k < ours.size(); ++k) {
        const double difference = std::abs(static_cast<double>(ours[k]) - static_cast<double>(expected[k]));
        off = difference <= off ? off : std::isfinite(difference) ? difference : std::numeric_limits<double>::infinity();
    }
    return off;
}
template <class T>
double largest_difference(const std::vector<T>& ours, const std::vector<T>& expected) {
    return largest_difference(std::span<const T>(ours), std::span<const T>(expected));
}

}  // namespace trifold::tests
