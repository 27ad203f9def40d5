// SPDX-License-Identifier: BSD-3-Clause
// How the lanes of a warp share the rows of rings that follow each other in a run (ring_rows.cuh).
#pragma once

#include <algorithm>

namespace trifold::cuda {

struct RingShare {
    int lanes = 1, lane_rows = 1;  ///< lanes of a ring, rows of each but the last one
    int pitch = 0, rings = 1;      ///< rows from one ring to the next in shared memory, rings of a run
};

/// So that lanes which read at a time read from different banks, as far as can be. R: rows a lane takes, those that end with its last one. pitch: the least, which comes by one copy; others are so many
/// bytes more that pieces stay aligned, and come ring by ring. groups: rings there are at most.
template <class T>
RingShare share_ring(int rows, int R, int pitch, int groups) {
    constexpr int words = 16 / static_cast<int>(sizeof(T)), banks = 128 / static_cast<int>(sizeof(T)), fine = 2;  // of so many readers of a bank nothing is seen
    constexpr int least_copied = 128;  // bytes: smaller copies cost more than banks do (measured)
    const int lanes = (rows + R - 1) / R;
    const auto rings = [&](int apart) { return std::min({groups, 32 / lanes, (32 * R - rows) / apart + 1}); };
    const auto ways = [&](int lane_rows, int apart) {
        int worst = 0;
        for (int from = 0; from < 32; from += banks) {
            int readers[banks] = {};
            for (int lane = from; lane < std::min(from + banks, rings(apart) * lanes); ++lane)
                worst = std::max(worst, ++readers[(lane / lanes * apart + std::min((lane % lanes + 1) * lane_rows, rows)) % banks]);
        }
        return worst;
    };
    const int most = rows * static_cast<int>(sizeof(T)) < least_copied ? pitch : pitch + banks - 1;
    RingShare best;
    double quality = 0;
    for (int apart = pitch; apart <= most; apart += words)
        for (int lane_rows = (rows + lanes - 1) / lanes; lane_rows <= R && (lanes - 1) * lane_rows < rows; ++lane_rows)
            if (const double found = static_cast<double>(rings(apart)) / std::max(fine, ways(lane_rows, apart)); found > quality) quality = found, best = {lanes, lane_rows, apart, rings(apart)};
    return best;
}

}  // namespace trifold::cuda
