// SPDX-License-Identifier: BSD-3-Clause
#include "bench/harness/two_phases.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace trifold::bench {
namespace {

using Column = std::array<double, 3>;

double determinant(const Column& a, const Column& b, const Column& c) {
    return a[0] * (b[1] * c[2] - b[2] * c[1]) - b[0] * (a[1] * c[2] - a[2] * c[1]) + c[0] * (a[1] * b[2] - a[2] * b[1]);
}

}  // namespace

// Of one row, with t[m] seconds in mode m, least Σ t where
//   Σ pass 1 (cores + to) t = 1                                   every row is reduced
//   Σ pass 2 (cores + to) t - Σ pass 1 cores t ≥ 0                what the cores reduced is finished by somebody
//   Σ pass 2 (from - to) t + Σ pass 1 cores t ≥ 1                 x of all others comes back
TwoPhases fastest(std::span<const PhaseMode> modes) {
    double scale = 0;  // so that columns are of order 1
    for (const PhaseMode& mode : modes) scale = std::max({scale, mode.cores, mode.to, mode.from});
    std::vector<Column> columns;
    for (const PhaseMode& mode : modes) {
        const double cores = mode.cores / scale, to = mode.to / scale, from = mode.from / scale;
        columns.push_back(mode.pass == 1 ? Column{cores + to, -cores, cores} : Column{0, cores + to, from - to});
    }
    columns.push_back({0, -1, 0}), columns.push_back({0, 0, -1});  // more than is asked
    const Column wanted{1, 0, 1};
    constexpr double nothing = 1e-9;
    TwoPhases best;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < columns.size(); ++i)
        for (std::size_t j = i + 1; j < columns.size(); ++j)
            for (std::size_t k = j + 1; k < columns.size(); ++k) {
                const double all = determinant(columns[i], columns[j], columns[k]);
                if (std::abs(all) < nothing) continue;
                const std::array<std::size_t, 3> who{i, j, k};
                const std::array<double, 3> times{determinant(wanted, columns[j], columns[k]) / all, determinant(columns[i], wanted, columns[k]) / all, determinant(columns[i], columns[j], wanted) / all};
                TwoPhases found;
                double sum = 0, first = 0;
                bool good = true;
                for (std::size_t n = 0; n < 3; ++n) {
                    good = good && times[n] >= -nothing;
                    if (who[n] >= modes.size()) continue;
                    const PhaseMode& mode = modes[who[n]];
                    sum += times[n];
                    if (mode.pass == 1) first += times[n], found.share += times[n] * mode.cores / scale;
                    else found.sent += times[n] * mode.to / scale;
                }
                if (!good || !(sum < least)) continue;
                least = sum;
                found.rows_per_s = scale / sum, found.first = first / sum;
                best = found;
            }
    return best;
}

}  // namespace trifold::bench
