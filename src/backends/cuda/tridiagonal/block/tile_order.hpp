// SPDX-License-Identifier: BSD-3-Clause
// Which of the tiles side by side is the n-th. What is under way at a time are some thirty tiles that follow each other, of all rows: where rows lie a large power of two apart, their addresses differ
// in the lowest bits and in the highest ones only, and the memory is used unevenly. So runs of a few tiles side by side are taken in turns from places some way apart. (Measured: docs/notes/gpu_batches.md.)
#pragma once

#include <cstdint>

namespace trifold::cuda {

/// n = … q s i  becomes … s q i,   `run` bits of i, in_turns - run bits of s, apart - run bits of q.
struct TileOrder {
    static constexpr unsigned in_turns = 5;  ///< bits: tiles that are taken in turns
    unsigned run = 0, apart = 0;             ///< bits: tiles of a run, and from one run to the next
    unsigned tiles = 0;                      ///< so many are taken in this order, what follows as it comes

    constexpr unsigned operator()(unsigned n) const {
        if (n >= tiles) return n;
        const unsigned places = in_turns - run, turns = apart - run, i = n & ((1u << run) - 1), s = n >> run & ((1u << places) - 1), q = n >> in_turns & ((1u << turns) - 1);
        return n >> (apart + places) << (apart + places) | s << apart | q << run | i;
    }
};

/// Tiles of `tile_bytes` of a row, rows `row_bytes` apart.
TileOrder tile_order(std::int64_t row_bytes, int tile_bytes, unsigned tiles);

}  // namespace trifold::cuda
