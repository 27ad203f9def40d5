// SPDX-License-Identifier: BSD-3-Clause
// One implicit (backward Euler) step of 1-D diffusion  u_t = (k u_z)_z  through rough, layered material:
//
//   (1 + t[i-1/2] + t[i+1/2]) x[i] - t[i-1/2] x[i-1] - t[i+1/2] x[i+1] = u[i],     t[i+1/2] = number · 2 k[i] k[i+1] /
//   (k[i] + k[i+1])
//
// Cells of equal height h; conductivity k log-uniform over `contrast` with geometric mean 1, constant over layers of 8
// cells; harmonic means at the faces; number = Δt·k_mean/h². Dirichlet ends: temperature 0 at the outer faces, half a
// cell away from the centres, so t there is number · 2 k. u, the temperature before, is rough: uniform in [0, 1), cell
// by cell.
#include <cmath>

#include "io/generators/kinds.hpp"

namespace trifold::io {
namespace {

constexpr std::int64_t layer_cells = 8;
enum { number, contrast };
constexpr Parameter parameters[] = {
    {"number", 1, 1e-12, 1e12, false, "time step x mean conductivity / cell height squared"},
    {"contrast", 1e4, 1, 1e12, false, "largest over smallest conductivity"},
};

void fill(const Values& values, const Tile& tile) {
    const double range = std::log(values[contrast]), scale = values[number];
    const std::int64_t last_layer = (tile.rows - 1) / layer_cells;
    const auto conductivity = [&](std::int64_t layer) { return std::exp((tile.key.uniform(layer) - 0.5) * range); };
    const auto face = [&](double k, double other) { return scale * (2 * k * other / (k + other)); };

    std::int64_t layer = tile.first / layer_cells;
    double k = conductivity(layer);
    double before = layer > 0 ? face(conductivity(layer - 1), k) : scale * 2 * k;  // through the face above this layer
    for (std::int64_t i = tile.first, end = tile.first + tile.count; i < end; ++layer) {
        const std::int64_t begin = layer * layer_cells, stop = std::min(std::min(begin + layer_cells, tile.rows), end);
        const double inside = scale * k;
        const double next = layer < last_layer ? conductivity(layer + 1) : 0;
        const double after = layer < last_layer ? face(k, next) : scale * 2 * k;
        const std::int64_t layer_end = std::min(begin + layer_cells, tile.rows) - 1;
        for (; i < stop; ++i) {
            const std::int64_t j = i - tile.first;
            const double up = i == begin ? before : inside, down = i == layer_end ? after : inside;
            tile.lower[j] = -up;
            tile.diag[j] = 1 + up + down;
            tile.upper[j] = -down;
        }
        k = next;
        before = after;
    }
    close_ends(tile);
}

void fill_rhs(const Values&, const Tile& tile) {
    const StreamKey temperature = tile.key.stream(1);
    for (std::int64_t j = 0; j < tile.count; ++j) tile.rhs[j] = temperature.uniform(tile.first + j);
}

}  // namespace

const GeneratorKind diffusion_kind{"diffusion", "one implicit step of 1-D diffusion through rough, layered material",
                                   parameters,  fill,
                                   fill_rhs,    false,
                                   nullptr};

}  // namespace trifold::io
