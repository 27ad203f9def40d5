// SPDX-License-Identifier: BSD-3-Clause
// The generators, one per file; table.cpp lists them.
#pragma once

#include <algorithm>

#include "io/generators/generator.hpp"

namespace trifold::io {

extern const GeneratorKind diffusion_kind, poisson_kind, toeplitz_kind, dominant_kind, random_kind, graded_kind,
    lesp_kind, kms_kind, dorr_kind, clement_kind, zoo_kind;

/// Random streams of a system's matrix, one per diagonal.
enum MatrixStream : std::uint64_t { lower_stream = 11, diag_stream, upper_stream };

/// Zeroes what lies outside the matrix: lower of row 0, upper of row n-1.
inline void close_ends(const Tile& tile) {
    if (tile.first == 0) tile.lower[0] = 0;
    if (tile.first + tile.count == tile.rows) tile.upper[tile.count - 1] = 0;
}

}  // namespace trifold::io
