// SPDX-License-Identifier: BSD-3-Clause
// One call of `sweep_pivoted` outside the vector units: how the system is cut, scratch, what groups report.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "backends/cpu/tridiagonal/sweep_job.hpp"
#include "families/tridiagonal/lane_spread.hpp"

namespace trifold::cpu {

/// Rows -pad … are cut into groups of `lanes` stretches of `blocks` blocks; what lies outside the system is an identity.
struct PivotedCut {
    static constexpr std::int64_t shortest = 256;  ///< rows of a block
    static constexpr std::int64_t unit = 32;       ///< an even number of tiles of any vector
    static constexpr std::int64_t fewest = 24, most = 192, groups_wanted = 32;

    /// Longer blocks do not pay: pivot rows would lie far outside the second-level cache, or three blocks in each stretch too much.
    static std::int64_t longest(std::int64_t rows, std::int64_t line) { return std::min<std::int64_t>(4096, rows / (64 * line)); }

    std::int64_t rows, lanes, pad, block = 0, blocks = 0, groups = 0;

    PivotedCut(std::int64_t rows_, std::int64_t lanes_, std::int64_t pad_, std::int64_t shortest_block, std::int64_t line)
        : rows(rows_), lanes(lanes_), pad(pad_) {
        const std::int64_t all = rows + pad;
        std::int64_t best = -1, least = 0;
        // Far enough apart, the least work decides.
        for (std::int64_t more = 0; more < 4; ++more)
            for (std::int64_t longer = 0; longer < 6; ++longer) {
                const std::int64_t candidate = shortest_block + more * unit;
                const std::int64_t wanted = std::clamp(all / (lanes * candidate * groups_wanted), fewest, most);
                const std::int64_t whole = std::max<std::int64_t>(all / (lanes * candidate * wanted), 1), set = lanes * candidate * whole;
                const std::int64_t count = (all + set - 1) / set + longer, stretch = count * candidate;
                const std::int64_t apart = tridiagonal::lane_spread(stretch / line, lanes);
                const std::int64_t work = (all + lanes * stretch - 1) / (lanes * stretch) * (stretch + 3 * candidate);
                if (apart < best || (apart == best && work >= least)) continue;
                best = apart, least = work, block = candidate, blocks = count;
            }
        groups = (all + lanes * length() - 1) / (lanes * length());
    }

    std::int64_t length() const { return blocks * block; }
    std::int64_t start(std::int64_t group) const { return group * lanes * length() - pad; }
};

/// What one stretch knows: x of the row before it and of the row after it as it computed them itself, the largest |x| of its first
/// block, its last one and all, and the largest difference where blocks met that is not small against the x there.
template <class T>
struct PivotedSeam {
    T before, after, first_largest, last_largest, largest, jump;
};

template <class T>
struct PivotedUndo;

template <class T>
struct PivotedJob {
    SweepArrays<T> arrays;
    PivotedCut cut;
    T apart;      ///< how far x of one row may be from what another block saw, relative to the largest |x| of both blocks
    bool stream;  ///< x goes past the caches
    PivotedSeam<T>* seams;
    const PivotedUndo<T>* undo;  ///< in place; else null
    bool second_level = devices::asks_second_level();   ///< where lines are asked for
    std::int64_t ask_tiles = second_level ? 8 : 4;       ///< ahead. Into the first level: less is late, more is evicted
    std::atomic<bool> stop{false};

    /// Numbers per thread: pivot rows of three blocks, 3 per row and lane.
    static std::int64_t ring(std::int64_t block) { return 3 * 3 * block * line<T>; }
};

}  // namespace trifold::cpu
