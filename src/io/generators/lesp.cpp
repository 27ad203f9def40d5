// SPDX-License-Identifier: BSD-3-Clause
// lesp(n): lower[i] = 1/(i+1), diag[i] = -(2i+5), upper[i] = i+2 for i = 0 … n-1. Eigenvalues real and smoothly
// distributed, increasingly sensitive (Lenferink and Spijker, "On the use of stability regions in the numerical
// analysis of initial value problems", 1991).
#include "io/generators/kinds.hpp"

namespace trifold::io {

static void fill(const Values&, const Tile& tile) {
    for (std::int64_t j = 0; j < tile.count; ++j) {
        const double i = static_cast<double>(tile.first + j);
        tile.lower[j] = 1 / (i + 1);
        tile.diag[j] = -(2 * i + 5);
        tile.upper[j] = i + 2;
    }
    close_ends(tile);
}

const GeneratorKind lesp_kind{"lesp", "sensitive real eigenvalues (Lenferink and Spijker)", {}, fill, nullptr, false,
                              nullptr};

}  // namespace trifold::io
