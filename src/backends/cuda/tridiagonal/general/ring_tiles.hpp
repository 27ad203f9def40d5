// SPDX-License-Identifier: BSD-3-Clause
// How rings are cut for ring_tiles.cuh.
#pragma once

namespace trifold::cuda {

/// How ring_tiles.cuh cuts: rings of a block, rows of a chunk and chunks of a ring, chunks of a group and groups of a ring (one: chunks are not grouped).
struct RingTiles {
    int rings = 1, chunk = 1, chunks = 1, group = 1, groups = 1;
    unsigned row_inverse = 0, ring_inverse = 0;  ///< 2^32 over rows of a ring and rings of a block, rounded up: divide what is below 2^20 exactly
    int threads = 32, shared_bytes = 0;
};
inline constexpr int most_tile_threads = 768;

/// What a block of ring_tiles.cuh knows of a ring.
template <class T>
struct TileArrays {
    T* data[5];  ///< lower, diag, upper, rhs, x
    int bad;
};

/// false: a ring has too many rows.
template <class T>
bool cut_ring_tiles(int rows, bool along_rows, RingTiles& cut);

}  // namespace trifold::cuda
