// SPDX-License-Identifier: BSD-3-Clause
// `dominant` with row i scaled by 10^(-decades/2 … +decades/2), growing from the first row to the last: a solver that
// forms products of rows far apart overflows.
#include <cmath>

#include "io/generators/kinds.hpp"

namespace trifold::io {
namespace {

enum { decades, ratio };
constexpr Parameter parameters[] = {
    {"decades", 300, 0, 600, false, "powers of ten between the first row and the last"},
    {"ratio", 2, 1e-6, 1e6, false, "diagonal over the sum of its neighbours' sizes"},
};

void fill(const Values& values, const Tile& tile) {
    dominant_kind.fill({values[ratio]}, tile);
    const double steps = tile.rows > 1 ? static_cast<double>(tile.rows - 1) : 1;
    for (std::int64_t j = 0; j < tile.count; ++j) {
        const double scale = std::pow(10.0, values[decades] * (static_cast<double>(tile.first + j) / steps - 0.5));
        tile.lower[j] *= scale;
        tile.diag[j] *= scale;
        tile.upper[j] *= scale;
    }
}

}  // namespace

const GeneratorKind graded_kind{
    "graded", "dominant rows whose sizes span many powers of ten", parameters, fill, nullptr, false, nullptr};

}  // namespace trifold::io
