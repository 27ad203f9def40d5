// SPDX-License-Identifier: BSD-3-Clause
// lower and upper uniform in [-1, 1), diag = ratio · (|lower| + |upper|): diagonally dominant from ratio 1 on.
#include <cmath>

#include "io/generators/kinds.hpp"

namespace trifold::io {
namespace {

enum { ratio };
constexpr Parameter parameters[] = {{"ratio", 2, 1e-6, 1e12, false, "diagonal over the sum of its neighbours' sizes"}};

void fill(const Values& values, const Tile& tile) {
    const StreamKey below = tile.key.stream(lower_stream), above = tile.key.stream(upper_stream);
    for (std::int64_t j = 0; j < tile.count; ++j) {
        tile.lower[j] = below.symmetric(tile.first + j);
        tile.upper[j] = above.symmetric(tile.first + j);
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
