// SPDX-License-Identifier: BSD-3-Clause
// Where things lie in the shared memory of a block that has rows side by side (rows_kernel.cuh), in bytes.
#pragma once

namespace trifold::cuda {

inline constexpr int warp_words = 124, quad_words = 48;  ///< WarpRows<T>::words, Quads<T, 16>::words
inline constexpr int exchange_header = 32;              ///< barriers of an Exchange

/// Messages of `parts` warps, in two places by turns: six words each, a verdict, and the next tile.
constexpr int exchange_bytes(int parts, int word) { return 2 * parts * (6 * word + 4) + 8; }

/// Up to 4 parts are solved in registers, up to 16 where the lanes' rows are, which are put aside.
constexpr int coupling_words(bool couple, int parts) { return !couple || parts <= 16 ? 0 : warp_words; }

struct RowsMemory {
    int tiles, scratch, couplings, exchange, bad, bytes;

    /// word: bytes of an element; last_elements: tile_elements of the last warp; flags: a byte per system of a warp's tile.
    constexpr RowsMemory(int word, int warps, int tile_elements, int last_elements, int flags, bool couple, int parts)
        : tiles((8 * warps + (couple ? exchange_header : 0) + 127) / 128 * 128), scratch(tiles + 4 * ((warps - 1) * tile_elements + last_elements) * word),
          couplings(scratch + warps * warp_words * word), exchange(couplings + warps * coupling_words(couple, parts) * word),
          bad(exchange + (couple ? (exchange_bytes(parts, word) + 15) / 16 * 16 : 0)), bytes(bad + (couple ? 0 : warps * flags)) {}
};

}  // namespace trifold::cuda
