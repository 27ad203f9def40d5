// SPDX-License-Identifier: BSD-3-Clause
// Every entry uniform in [-1, 1): sign-indefinite, pivoting needed. Single diagonals may be set instead, which makes
// most of the matrices that tridiagonal solvers are compared on (Klein and Strzodka 2021, table 1).
#include <cmath>
#include <limits>

#include "io/generators/kinds.hpp"
#include "io/generators/random_entries.hpp"

namespace trifold::io {
namespace {

enum { lower, diag, upper, zeros, lower_scale, weak_link };
constexpr double drawn = std::numeric_limits<double>::quiet_NaN();
constexpr Parameter parameters[] = {
    {"lower", drawn, -1e300, 1e300, false, "left of the diagonal"},
    {"diag", drawn, -1e300, 1e300, false, "the diagonal"},
    {"upper", drawn, -1e300, 1e300, false, "right of the diagonal"},
    {"zeros", 0, 0, 1, false, "probability of a zero beside the diagonal"},
    {"lower_scale", 1, -1e300, 1e300, false, "factor on all of lower"},
    {"weak_link", 1, -1e300, 1e300, false, "factor on lower in row rows/2 alone"},
};

void draw(double* values, double fixed, const StreamKey& key, const Tile& tile) {
    if (std::isnan(fixed))
        for (std::int64_t j = 0; j < tile.count; ++j) values[j] = key.symmetric(tile.first + j);
    else
        std::fill_n(values, tile.count, fixed);
}

// A second stream decides, so that the other entries stay what they are with zeros=0.
void drop(double* values, double probability, const StreamKey& key, const Tile& tile) {
    if (probability == 0) return;
    for (std::int64_t j = 0; j < tile.count; ++j)
        if (key.uniform(tile.first + j) < probability) values[j] = 0;
}

void fill(const Values& values, const Tile& tile) {
    const RandomEntries entries{values[lower], values[diag],        values[upper],
                                values[zeros], values[lower_scale], values[weak_link]};
    fill_random(entries, tile);
}

}  // namespace

void fill_random(const RandomEntries& entries, const Tile& tile) {
    const StreamKey below = tile.key.stream(lower_stream), above = tile.key.stream(upper_stream);
    draw(tile.lower, entries.lower, below, tile);
    draw(tile.diag, entries.diag, tile.key.stream(diag_stream), tile);
    draw(tile.upper, entries.upper, above, tile);
    drop(tile.lower, entries.zeros, below.stream(0), tile);
    drop(tile.upper, entries.zeros, above.stream(0), tile);
    if (entries.lower_scale != 1)
        for (std::int64_t j = 0; j < tile.count; ++j) tile.lower[j] *= entries.lower_scale;
    const std::int64_t middle = tile.rows / 2 - tile.first;
    if (middle >= 0 && middle < tile.count) tile.lower[middle] *= entries.weak_link;
    close_ends(tile);
}

const GeneratorKind random_kind{
    "random", "uniform in [-1, 1): sign-indefinite; single diagonals can be set", parameters, fill, nullptr, false,
    nullptr};

}  // namespace trifold::io
