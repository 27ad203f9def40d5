// SPDX-License-Identifier: BSD-3-Clause
// Who solves which systems of a ragged batch on a GPU: by how many rows they have.
#pragma once

#include <cstdint>

#include "problems/tridiagonal/system.hpp"

namespace trifold::cuda {

/// What blocks hold, and how many may work at a time.
struct RaggedLimits {
    std::int64_t tile_rows = 0;   ///< rows of several systems in a block of ragged_tile_kernel
    std::int64_t chip_rows = 0;   ///< rows of one system in a block of ragged_single_kernel, at least tile_rows
    int multiprocessors = 1;
};

/// From so many rows on a system gets launches of its own, whatever else there is: it keeps all of the device busy for as long as these take, about.
inline constexpr std::int64_t least_rows_alone = std::int64_t{1} << 18;

struct RaggedPlan {
    std::int64_t rows = 0;             ///< of all systems
    std::int64_t window = 1, windows = 0;  ///< systems that a block of ragged_tile_kernel looks at, and how many such windows there are
    std::int64_t singles = 0;          ///< systems of ragged_single_kernel: of more than tile_rows, and fewer than least_alone
    std::int64_t longest_single = 0;   ///< of these, rows
    std::int64_t least_alone = least_rows_alone;  ///< from so many rows on they get launches of their own
    std::int64_t alone = 0;            ///< how many such systems there are
};

/// Reads System::offsets; all of them where some system does not fit into a tile.
RaggedPlan plan_ragged(const tridiagonal::System& system, const RaggedLimits& limits);

}  // namespace trifold::cuda
