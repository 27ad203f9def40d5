// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/general/ring_tiles.hpp"

#include <algorithm>
#include <cmath>

namespace trifold::cuda {

template <class T>
bool cut_ring_tiles(int rows, bool along_rows, RingTiles& cut) {
    // Measured on an H200 (docs/notes/gpu_rings.md). Several blocks on a multiprocessor load, compute and store at different times; shorter chunks are more threads, and more to join.
    constexpr int word = static_cast<int>(sizeof(T)), half_bytes = 112 << 10, block_bytes = 227 << 10, whole_chunks = 8;
    const int whole_rows = along_rows || word == 4 ? 32 : 16, least_chunk = along_rows ? word == 8 ? 19 : 33 : word == 8 ? 11 : 19;
    const int usual_bytes = along_rows && rows <= whole_rows ? 55 << 10 : 38 << 10;
    if (rows < 3) return false;
    cut = {};
    if (rows <= whole_rows) {
        cut.chunk = rows;
    } else {
        // Long rings: rows of a chunk, chunks of a group and groups follow each other.
        const int chunk_rows = std::max(least_chunk, static_cast<int>(1.25 * std::cbrt(rows))), chunks = (rows + chunk_rows - 1) / chunk_rows;
        cut.chunk = (rows + chunks - 1) / chunks | 1;  // odd: threads read from different banks
        cut.chunks = (rows + cut.chunk - 1) / cut.chunk;
    }
    cut.group = cut.chunks;
    if (cut.chunks > whole_chunks) {
        cut.group = static_cast<int>(std::ceil(std::sqrt(cut.chunks)));
        cut.groups = (cut.chunks + cut.group - 1) / cut.group;
    }
    const int ring_bytes = 4 * rows * word + static_cast<int>(sizeof(TileArrays<T>));
    const auto fits = [&](int rings, int bytes) { return rings * ring_bytes <= bytes && rings * cut.chunks <= most_tile_threads; };
    if (along_rows) {
        cut.rings = std::max(1, std::min(usual_bytes / ring_bytes, 256 / cut.chunks));
        while (cut.rings > 1 && cut.rings * rows * word % 16 != 0) --cut.rings;  // tiles begin at vectors
    } else {
        // Pieces of a row of 32 bytes are what memory moves at least; a cluster that shares them is better then.
        cut.rings = 0;
        for (int rings = 32 / word; rings <= 512 / word; rings *= 2)
            if (fits(rings, rings * word == 32 ? block_bytes : rings * word == 64 ? half_bytes : usual_bytes)) cut.rings = rings;
    }
    if (cut.rings == 0 || !fits(cut.rings, block_bytes)) return false;
    cut.row_inverse = ~0u / static_cast<unsigned>(rows) + 1;
    cut.ring_inverse = ~0u / static_cast<unsigned>(cut.rings) + 1;
    cut.threads = (cut.rings * cut.chunks + 31) / 32 * 32;
    cut.shared_bytes = cut.rings * ring_bytes;
    return true;
}

template bool cut_ring_tiles<float>(int, bool, RingTiles&);
template bool cut_ring_tiles<double>(int, bool, RingTiles&);

}  // namespace trifold::cuda
