// SPDX-License-Identifier: BSD-3-Clause
// The same three numbers in every row; poisson is  -x[i-1] + 2 x[i] - x[i+1], the second difference with Dirichlet
// ends.
#include "io/generators/kinds.hpp"

namespace trifold::io {
namespace {

enum { lower, diag, upper };
constexpr Parameter parameters[] = {
    {"lower", -1, -1e300, 1e300, false, "left of the diagonal"},
    {"diag", 4, -1e300, 1e300, false, "the diagonal"},
    {"upper", -1, -1e300, 1e300, false, "right of the diagonal"},
};

void fill_constant(const Tile& tile, double below, double on, double above) {
    std::fill_n(tile.lower, tile.count, below);
    std::fill_n(tile.diag, tile.count, on);
    std::fill_n(tile.upper, tile.count, above);
    close_ends(tile);
}

void fill(const Values& values, const Tile& tile) {
    fill_constant(tile, values[lower], values[diag], values[upper]);
}
void fill_poisson(const Values&, const Tile& tile) {
    fill_constant(tile, -1, 2, -1);
}

}  // namespace

const GeneratorKind toeplitz_kind{"toeplitz", "the same three numbers in every row", parameters, fill, nullptr, true,
                                  nullptr};
const GeneratorKind poisson_kind{
    "poisson", "-1, 2, -1: condition grows with rows squared, couplings never decay", {}, fill_poisson, nullptr, true,
    nullptr};

}  // namespace trifold::io
