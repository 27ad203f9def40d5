// SPDX-License-Identifier: BSD-3-Clause
// Who takes what of long systems with one matrix: units of work for pairs of warps, all of which begin at once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cuda/tridiagonal/block/column_rows.hpp"

namespace trifold::cuda {

/// The first tiles of columns are walked down whole, in as many full turns of all pairs as there are; what is left would keep few of them busy, and is cut into segments,
/// each of which reads its ends once more.
struct MarchCut {
    struct Part {
        unsigned tiles = 0, segments = 1;
        int chunks = 0;  ///< of a segment; the last one may have fewer
        TRIFOLD_BOTH unsigned units() const { return tiles * segments; }
    };
    struct Unit {
        unsigned tile;
        int first, chunks;
    };
    Part whole, rest;

    TRIFOLD_BOTH unsigned units() const { return whole.units() + rest.units(); }
    /// Units that follow each other are of tiles that do.
    TRIFOLD_BOTH Unit unit(unsigned number) const {
        const bool first = number < whole.units();
        const unsigned of = first ? number : number - whole.units(), tiles = first ? whole.tiles : rest.tiles, segment = of / tiles;
        const int chunks = first ? whole.chunks : rest.chunks;
        return {of - segment * tiles + (first ? 0 : whole.tiles), static_cast<int>(segment) * chunks, chunks};
    }

    /// Chunks that pass a pair of warps until so many are done, two at either end of a segment and two until x comes out.
    static std::int64_t time(std::int64_t tiles, std::int64_t segments, std::int64_t chunks, std::int64_t pairs) {
        const std::int64_t ends = segments > 1 ? 2 : 0;
        return (tiles * segments + pairs - 1) / pairs * ((chunks + segments - 1) / segments + ends + 2);
    }
    static Part cut(std::int64_t tiles, std::int64_t chunks, std::int64_t pairs) {
        constexpr std::int64_t most = 1024, fewest_chunks = 4;
        std::int64_t best = 1;
        for (std::int64_t segments = 2; segments <= std::min(chunks / fewest_chunks, most); ++segments)
            if (time(tiles, segments, chunks, pairs) < time(tiles, best, chunks, pairs)) best = segments;
        const std::int64_t each = (chunks + best - 1) / best;
        return {static_cast<unsigned>(tiles), static_cast<unsigned>((chunks + each - 1) / each), static_cast<int>(each)};
    }
    static MarchCut of(std::int64_t tiles, std::int64_t chunks, std::int64_t pairs) {
        MarchCut cut;
        const std::int64_t whole = tiles / pairs * pairs;
        cut.whole = {static_cast<unsigned>(whole), 1, static_cast<int>(chunks)};
        cut.rest = MarchCut::cut(tiles - whole, chunks, pairs);
        return cut;
    }
};

}  // namespace trifold::cuda
