// SPDX-License-Identifier: BSD-3-Clause
// The inverse of the Kac–Murdock–Szegő matrix  K[i][j] = rho^|i-j|:  (1/(1-rho²)) · tridiag(-rho, 1+rho², -rho), both
// ends of the diagonal 1 (Trench, "Numerical solution of the eigenvalue problem for Hermitian Toeplitz matrices",
// 1989).
#include "io/generators/kinds.hpp"

namespace trifold::io {
namespace {

enum { rho };
constexpr Parameter parameters[] = {{"rho", 0.5, -0.999999, 0.999999, false, "correlation of neighbours"}};

void fill(const Values& values, const Tile& tile) {
    const double r = values[rho], scale = 1 / (1 - r * r);
    std::fill_n(tile.lower, tile.count, -r * scale);
    std::fill_n(tile.diag, tile.count, (1 + r * r) * scale);
    std::fill_n(tile.upper, tile.count, -r * scale);
    if (tile.first == 0) tile.diag[0] = scale;
    if (tile.first + tile.count == tile.rows) tile.diag[tile.count - 1] = tile.rows == 1 ? 1 : scale;
    close_ends(tile);
}

}  // namespace

const GeneratorKind kms_kind{"kms",  "inverse of the Kac-Murdock-Szego matrix", parameters, fill, nullptr, false,
                             nullptr};

}  // namespace trifold::io
