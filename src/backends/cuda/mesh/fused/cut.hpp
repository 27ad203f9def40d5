// SPDX-License-Identifier: BSD-3-Clause
// How blocks of a pass (pass.cuh, kept.cuh) have lines.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/mesh/chip.hpp"

namespace trifold::cuda::fused {

/// A pass: one line solve, a block having `columns` lines of `segments` times up to `rows` rows.
struct Cut {
    int rows = 0, segments = 0, columns = 0;  ///< R, S, W
    int threads = 0, blocks = 0;
    std::size_t shared = 0;

    bool fits() const noexcept { return threads > 0; }
};

/// What a block has to hold.
struct LinesOfMesh {
    int axis = 0, rows = 0;
    std::int64_t lines = 1;      ///< of a mesh
    bool ring = false;
};

Cut cut_lines(const Chip& chip, std::size_t value_bytes, const LinesOfMesh& lines);
/// Where matrices are kept. `meshes`: how many lines side by side may depend on it, not how segments are cut.
Cut cut_kept(const Chip& chip, std::size_t value_bytes, const LinesOfMesh& lines, std::int64_t meshes);

}  // namespace trifold::cuda::fused
