// SPDX-License-Identifier: BSD-3-Clause
// How lines along x lie in shared memory between the order of memory and that of segments, free of conflicts both ways.
//
// Lanes that read at the same time have `apart` segments of W lines. Where segments are of one length, R rows and a place of padding make an odd number, and lines are an odd
// multiple of `apart` from each other: then c pitch + s (R + padding) are different banks for all of them.
#pragma once

namespace trifold::cuda::fused {

struct Staging {
    int padding, pitch;  ///< places behind every segment; from line to line
};

constexpr Staging staging(int n, int rows, int segments, int columns, int value_bytes) {
    const int at_once = 128 / value_bytes, apart = columns < at_once ? at_once / columns : 1;
    const int padding = n == rows * segments && apart > 1 && rows % 2 == 0 ? 1 : 0, packed = n + padding * segments;
    return {padding, packed + (3 * apart - packed % (2 * apart)) % (2 * apart)};
}

}  // namespace trifold::cuda::fused
