// SPDX-License-Identifier: BSD-3-Clause
// lower and upper uniform in [-1, 1) without (-least, least), diag = ratio · (|lower| + |upper|): diagonally dominant from ratio 1 on.
#include <cmath>

#include "io/generators/kinds.hpp"

namespace trifold::io {
namespace {

enum { ratio, least };
constexpr Parameter parameters[] = {{"ratio", 2, 1e-6, 1e12, false, "diagonal over the sum of its neighbours' sizes"},
                                    {"least", 0, 0, 1, false, "smallest size of an off-diagonal: rows of like scale"}};

double away_from_zero(double value, double least) { return std::copysign(least + (1 - least) * std::fabs(value), value); }

void fill(const Values& values, const Tile& tile) {
    const StreamKey below = tile.key.stream(lower_stream), above = tile.key.stream(upper_stream);
    for (std::int64_t j = 0; j < tile.count; ++j) {
        tile.lower[j] = away_from_zero(below.symmetric(tile.first + j), values[least]);
        tile.upper[j] = away_from_zero(above.symmetric(tile.first + j), values[least]);
    }
    close_ends(tile);
    for (std::int64_t j = 0; j < tile.count; ++j)
        tile.diag[j] = values[ratio] * (std::fabs(tile.lower[j]) + std::fabs(tile.upper[j]));
    // A lone row has no neighbours to dominate.
    if (tile.rows == 1) tile.diag[0] = values[ratio];
}

}  // namespace

const GeneratorKind dominant_kind{
    "dominant", "random off-diagonals, a diagonal that dominates them by a ratio", parameters, fill, nullptr, false,
    nullptr};

}  // namespace trifold::io
