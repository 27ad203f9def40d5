// SPDX-License-Identifier: BSD-3-Clause
// Two programs timed in turns: what their ratio is, and how surely.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace trifold::bench {

/// Median of the ratios of rounds, and limits between which their true median lies, whatever their distribution (order statistics).
struct Paired {
    double median = 0, low = 0, high = 0;
};

/// before[k] / after[k] of rounds k: above 1 where `after` is faster. beyond: the chance that the true median is beyond either limit, at most. Too few rounds (fewer than 6 for 2.5 %) say nothing: 0 … infinity.
inline Paired paired(const std::vector<double>& before, const std::vector<double>& after, double beyond = 0.025) {
    std::vector<double> ratios;
    for (std::size_t k = 0; k < std::min(before.size(), after.size()); ++k) ratios.push_back(before[k] / after[k]);
    std::sort(ratios.begin(), ratios.end());
    const std::size_t n = ratios.size();
    if (n == 0) return {NAN, 0, INFINITY};
    Paired p{n % 2 ? ratios[n / 2] : (ratios[n / 2 - 1] + ratios[n / 2]) / 2, 0, INFINITY};
    // P(fewer than d of n rounds below the true median) = sum of C(n, k) / 2^n, k < d: the largest d that keeps it.
    double tail = 0, term = std::ldexp(1.0, -static_cast<int>(n));
    for (std::size_t d = 1; 2 * d <= n; ++d) {
        tail += term;
        if (tail > beyond) break;
        p.low = ratios[d - 1], p.high = ratios[n - d];
        term *= static_cast<double>(n - d + 1) / static_cast<double>(d);
    }
    return p;
}

/// "faster": surely; "not slower": surely not by `margin` or more; "slower": surely by that; "open".
inline const char* verdict(const Paired& ratio, double margin) {
    return ratio.low > 1 ? "faster" : ratio.low >= 1 - margin ? "not slower" : ratio.high < 1 - margin ? "slower" : "open";
}

}  // namespace trifold::bench
