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
    int tile_warps = 1;           ///< of a block of ragged_tile_kernel
    int warp_rows = 0;            ///< rows of a run that a warp has, or of the part that it has of a team's; 0: there are no runs
    int block_warps = 1;          ///< most warps of a block of a team
    int (*resident)(int warps, int blocks) = nullptr;  ///< blocks on a multiprocessor, of so many warps each in clusters of so many
    int multiprocessor_warps = 1; ///< with so many rows each
};

/// Warps that share a run.
struct RaggedTeam {
    int warps = 0, blocks = 1;  ///< of a block; of a cluster
    int rows = 0;               ///< of a run, at most; 0: there is no such team
};

inline constexpr int most_warps_of_team = 16;  ///< of more than three blocks each waits too long for the others

/// Which systems are tried without pivots in runs of systems that follow each other (ragged_runs.cuh), and by whom.
struct RunsPlan {
    std::int64_t longest = 0;      ///< systems of at most so many rows; 0: there are no runs
    std::int64_t least_listed = 1; ///< of what they leave, systems of so many rows and fewer are a warp's (ragged_marked.cuh), others are listed
    RaggedTeam team;               ///< for all of them, or for those that a warp has room for
    RaggedTeam long_team;          ///< for the rest, a run for each
    std::int64_t long_systems = 0; ///< how many these are at most
    std::int64_t whole = 0;        ///< systems of more rows are cut into parts of a warp's rows
    std::int64_t cut_systems = 0, most_parts = 0;  ///< how many these are at most
    int capacity = 0;              ///< rows of a run of `team`
    std::int64_t window = 0, windows = 0;  ///< rows from which a thread makes runs
    std::int64_t step = 1;         ///< systems that are likely to fit
    std::int64_t most_runs = 0;    ///< of team
};

/// From so many rows on a system gets launches of its own, whatever else there is: it keeps all of the device busy for as long as these take, about.
inline constexpr std::int64_t least_rows_alone = std::int64_t{1} << 18;

struct RaggedPlan {
    std::int64_t rows = 0;             ///< of all systems
    std::int64_t window = 1, windows = 0;  ///< systems that a block of ragged_tile_kernel looks at, and how many such windows there are
    std::int64_t singles = 0;          ///< systems of ragged_single_kernel, at most: of more than tile_rows, and fewer than least_alone; those in runs where they were marked
    std::int64_t longest_single = 0;   ///< of these, rows, at most
    std::int64_t least_alone = least_rows_alone;  ///< from so many rows on they get launches of their own
    std::int64_t alone = 0;            ///< how many such systems there are
    RunsPlan runs;
};

/// Reads System::offsets; all of them where some system has launches of its own, or there are no runs and it does not fit into a tile.
RaggedPlan plan_ragged(const tridiagonal::System& system, const RaggedLimits& limits);

}  // namespace trifold::cuda
