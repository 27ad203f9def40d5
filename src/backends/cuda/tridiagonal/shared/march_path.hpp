// SPDX-License-Identifier: BSD-3-Clause
// What two warps that walk down a segment of a long system read, look at again and store, chunk by chunk.
#pragma once

#include "backends/cuda/tridiagonal/block/column_rows.hpp"

namespace trifold::cuda {

/// `ahead` chunks more at either end of a segment than are stored. Slots of a ring of ahead + 2 chunks are taken in turns.
struct MarchPath {
    int ahead, ring, first_slot;
    int k0 = 0, k1 = 0, from = 0, to = 0;  ///< chunks that are stored, and that are read
    unsigned turn = 0;                     ///< chunks of units before

    /// The segment that begins with chunk `first`, of a system of `chunks`.
    TRIFOLD_BOTH void begin(int first, int segment_chunks, int chunks) {
        k0 = first, k1 = min(first + segment_chunks, chunks);
        from = max(k0 - ahead, 0), to = min(k1 + ahead, chunks);
    }
    TRIFOLD_BOTH void end() { turn += static_cast<unsigned>(to - from); }

    TRIFOLD_BOTH unsigned number(int k) const { return turn + static_cast<unsigned>(k - from); }
    TRIFOLD_BOTH int slot(int k) const { return first_slot + static_cast<int>(number(k) % static_cast<unsigned>(ring)); }
    TRIFOLD_BOTH unsigned phase(int k) const { return number(k) / static_cast<unsigned>(ring) & 1u; }

    /// Chunks that are stored when chunk k has gone down, upwards from the lowest; none where highest > lowest.
    TRIFOLD_BOTH int highest(int k) const { return max(k - ahead, k0); }
    TRIFOLD_BOTH int lowest(int known) const { return min(known, k1 - 1); }  ///< known: chunk k where the system ends with it, else k - ahead
    /// Whether chunk k + 2 may then be asked for, where k - ahead was.
    TRIFOLD_BOTH bool frees(int k) const { return k - ahead >= from; }
};

}  // namespace trifold::cuda
