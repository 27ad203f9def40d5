// SPDX-License-Identifier: BSD-3-Clause
// Rings as the on-chip kernels see them (ring_tiles.cuh, ring_kernel.cuh).
#pragma once

#include <cstdint>

#include "backends/cuda/runtime/outcome.hpp"
#include "backends/cuda/tridiagonal/general/ring_tiles.hpp"
#include "backends/cuda/tridiagonal/operand.cuh"

namespace trifold::cuda {

/// Rows of a lane, rings of a block, blocks of a cluster at most.
inline constexpr int ring_chunk = 8, rings_of_block = 8, most_ring_blocks = 16;
inline constexpr std::int64_t most_rows_on_chip = std::int64_t{32} * ring_chunk * most_ring_blocks;

template <class T>
struct RingJob {
    Levels levels;
    Source<T> operand[5];        ///< lower, diag, upper, rhs, x
    Source<T> right, left;       ///< of row 0 to x[n-1]; of the last row to x[0]
    int rows = 0, blocks = 1;    ///< blocks of a cluster that share a ring
    bool along_rows = true, adds = false;
    T accept = 0;                ///< accepted max|d - A x| of a lane's rows over max|b| max|x|
    unsigned char* marks = nullptr;  ///< per ring: left to another kernel
    bool only_marked = false;    ///< those that ring_tiles.cuh has left; it has counted them in DeviceOutcome::handed_over
    DeviceOutcome* outcome = nullptr;
};

template <class T>
struct RingTileJob {
    RingJob<T> rings;
    RingTiles cut;
    unsigned vectors = 0;  ///< bit m: a tile of operand m comes, and goes, by 16 bytes: one run where rows lie side by side, else one per row; corners are part of it
};

}  // namespace trifold::cuda
