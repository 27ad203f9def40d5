// SPDX-License-Identifier: BSD-3-Clause
// The best of many cuts, timed on an H200 in batches of 12 million points and more, where the models of cut.cpp were 1 to 25 % slower.
#include "backends/cuda/mesh/streaming/cut.hpp"

namespace trifold::cuda::streaming {
namespace {

constexpr TimedCut timed[] = {
    //  nx, along, across   H  lanes, R   K, warps, chunk, blocks   R, S, W, stages, prefetch, blocks, planes of the field
    {4, 80, 80, 80,        20, 16, 5,     2, 5, 20, 4,              20, 4, 80, 1, false, 2, 2},
    {4, 96, 96, 96,        16, 8, 13,     2, 3, 16, 3,              12, 8, 96, 2, false, 1, 2},
    {4, 128, 128, 128,     16, 8, 17,     1, 4, 32, 3,              32, 4, 32, 2, true, 3},
    {4, 192, 192, 192,     24, 32, 7,     2, 4, 24, 4,              24, 8, 64, 2, true, 1},
    {8, 64, 64, 64,        32, 8, 9,      1, 4, 32, 3,              16, 4, 32, 2, true, 3},
    {8, 80, 64, 64,        32, 16, 5,     2, 5, 32, 2,              8, 8, 80, 2, false, 1, 2},
    {8, 80, 80, 80,        20, 16, 5,     2, 5, 20, 2,              10, 8, 80, 1, false, 1, 2},
    {8, 96, 96, 96,        32, 8, 13,     2, 3, 32, 2,              12, 8, 32, 2, true, 2},
    {8, 128, 128, 128,     32, 16, 9,     2, 3, 32, 2,              32, 4, 32, 1, true, 2},
    {8, 192, 192, 192,     24, 16, 13,    2, 3, 24, 2,              24, 8, 32, 2, true, 1},
    {8, 256, 256, 256,     32, 16, 17,    1, 3, 32, 2,              32, 8, 32, 1, true, 1},
};

}  // namespace

const TimedCut* timed_cut(std::size_t value_bytes, int nx, int along, int across) {
    for (const TimedCut& one : timed)
        if (one.value_bytes == value_bytes && one.nx == nx && one.along == along && one.across == across) return &one;
    return nullptr;
}

RowsCut rows_of(const TimedCut& one, const Chip& chip, const Reach& reach, bool alike) {
    RowsCut cut;
    cut.lanes = one.lanes, cut.segment_rows = one.segment_rows, cut.rows = one.rows, cut.warps = one.warps, cut.chunk = one.chunk, cut.blocks = one.blocks;
    cut.depth = 2 * reach.z + 3, cut.alike = alike && (one.nx + cut.segment_rows - 1) / cut.segment_rows > 2, cut.threads = (cut.warps + 1) * 32;
    choose_pitch(cut, one.value_bytes, one.nx, reach.x);
    cut.shared = rows_shared(cut, static_cast<int>(16 / one.value_bytes), reach);
    return cut.shared > chip.shared_per_block ? RowsCut{} : cut;
}

ColumnsCut columns_of(const TimedCut& one, const Chip& chip, bool packed) {
    ColumnsCut cut;
    if (one.held_stages && !packed) return cut;
    cut.held_stages = one.held_stages;
    cut.segment_rows = one.columns_rows, cut.segments = one.columns_segments, cut.columns = one.columns, cut.stages = one.stages, cut.prefetch = one.prefetch, cut.blocks = one.columns_blocks;
    cut.threads = cut.columns * cut.segments;
    cut.shared = columns_shared(cut, one.value_bytes, true, false);
    return cut.shared > chip.shared_per_block ? ColumnsCut{} : cut;
}

}  // namespace trifold::cuda::streaming
