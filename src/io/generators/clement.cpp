// SPDX-License-Identifier: BSD-3-Clause
// clement(n): zero diagonal, lower 1 … n-1, upper n-1 … 1. Eigenvalues ±(n-1), ±(n-3), …; singular for odd n (Clement,
// "A class of triple-diagonal matrices for test purposes", SIAM Review 1, 1959).
#include "io/generators/kinds.hpp"

namespace trifold::io {

static void fill(const Values&, const Tile& tile) {
    for (std::int64_t j = 0; j < tile.count; ++j) {
        tile.lower[j] = static_cast<double>(tile.first + j);
        tile.diag[j] = 0;
        tile.upper[j] = static_cast<double>(tile.rows - 1 - tile.first - j);
    }
}

const GeneratorKind clement_kind{
    "clement", "zero diagonal; singular for an odd number of rows (Clement 1959)", {}, fill, nullptr, false, nullptr};

}  // namespace trifold::io
