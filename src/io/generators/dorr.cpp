// SPDX-License-Identifier: BSD-3-Clause
// dorr(n, theta): centred differences of a singular perturbation problem with a turning point; row dominant by a hair
// and very ill conditioned for small theta (Dorr, "An example of ill-conditioning in the numerical solution of singular
// perturbation problems", Math. Comp. 25, 1971).
//
//   h = 1/(n+1), m = ⌊(n+1)/2⌋, t = theta/h², for i = 1 … n:
//   i ≤ m: lower = -t, upper = lower - (1/2 - i h)/h;   i > m: upper = -t, lower = upper + (1/2 - i h)/h;   diag =
//   -(lower + upper)
#include "io/generators/kinds.hpp"

namespace trifold::io {
namespace {

enum { theta };
constexpr Parameter parameters[] = {{"theta", 1e-4, 1e-12, 1e6, false, "strength of the diffusion"}};

void fill(const Values& values, const Tile& tile) {
    const double h = 1 / (static_cast<double>(tile.rows) + 1), t = values[theta] / (h * h);
    const std::int64_t middle = (tile.rows + 1) / 2;
    for (std::int64_t j = 0; j < tile.count; ++j) {
        const std::int64_t i = tile.first + j + 1;
        const double drift = (0.5 - static_cast<double>(i) * h) / h;
        tile.lower[j] = i <= middle ? -t : -t + drift;
        tile.upper[j] = i <= middle ? -t - drift : -t;
        tile.diag[j] = -(tile.lower[j] + tile.upper[j]);
    }
    close_ends(tile);
}

}  // namespace

const GeneratorKind dorr_kind{
    "dorr",     "singular perturbation with a turning point, very ill conditioned (Dorr 1971)",
    parameters, fill,
    nullptr,    false,
    nullptr};

}  // namespace trifold::io
