// SPDX-License-Identifier: BSD-3-Clause
// The best of many cuts, timed on an H200 in batches of 8 million points and more, where the models of cut.cpp were 1 to 25 % slower. Of a shape the larger batches come first: the longer tasks, which bring fewer planes twice, are for those that have enough of them.
#include "backends/cuda/mesh/streaming/cut.hpp"

namespace trifold::cuda::streaming {
namespace {

constexpr TimedCut timed[] = {
    //  nx, along, across   H  lanes, R   K, warps, chunk, blocks, places, apart   R, S, W, stages, prefetch, blocks, planes of the field, from
    {4, 80, 80, 80,        16, 16, 5,     2, 5, 32, 3, 5, true,                    20, 4, 80, 1, false, 2, 2, 48},
    {4, 80, 80, 80,        16, 16, 5,     2, 5, 16, 3, 4, true,                    20, 4, 80, 1, false, 2, 2},
    {4, 96, 96, 96,        16, 8, 13,     2, 3, 32, 3, 5, true,                    24, 4, 96, 2, false, 1, 2, 48},
    {4, 96, 96, 96,        16, 8, 13,     2, 3, 16, 3, 5, true,                    24, 4, 96, 2, false, 1, 2},
    {4, 128, 128, 128,     16, 8, 17,     1, 4, 16, 3, 4, true,                    32, 4, 64, 1, true, 2},
    {4, 192, 192, 192,     24, 32, 7,     2, 4, 24, 4, 4, true,                    24, 8, 64, 2, true, 1},
    {4, 256, 256, 256,     16, 16, 17,    2, 4, 32, 2, 5, false,                   32, 8, 64, 1, true, 1},
    {8, 64, 64, 64,        32, 8, 9,      1, 4, 32, 3, 4, true,                    16, 4, 32, 2, true, 3},
    {8, 80, 64, 64,        16, 16, 5,     2, 5, 32, 2, 5, true,                    8, 8, 80, 2, false, 1, 2, 48},
    {8, 80, 64, 64,        16, 16, 5,     2, 5, 16, 2, 4, true,                    8, 8, 80, 2, false, 1, 2, 0, 24},
    {8, 80, 80, 80,        20, 16, 5,     2, 5, 20, 2, 5, true,                    10, 8, 80, 1, false, 1, 2},
    {8, 96, 96, 96,        24, 8, 13,     2, 3, 24, 2, 4, true,                    12, 8, 32, 2, true, 2},
    {8, 128, 128, 128,     32, 16, 9,     2, 3, 32, 2, 4, true,                    32, 4, 32, 1, true, 2},
    {8, 192, 192, 192,     24, 16, 13,    2, 3, 24, 2, 5, false,                   24, 8, 32, 2, true, 1},
    {8, 256, 256, 256,     32, 16, 17,    1, 3, 32, 2, 5, true,                    32, 8, 32, 1, true, 1},
};

}  // namespace

const TimedCut* timed_cut(std::size_t value_bytes, int nx, int along, int across, std::int64_t meshes) {
    for (const TimedCut& one : timed)
        if (one.value_bytes == value_bytes && one.nx == nx && one.along == along && one.across == across && meshes >= one.from) return &one;
    return nullptr;
}

RowsCut rows_of(const TimedCut& one, const Chip& chip, const Reach& reach, const AlongX& x) {
    RowsCut cut;
    cut.lanes = one.lanes, cut.segment_rows = one.segment_rows, cut.rows = one.rows, cut.warps = one.warps, cut.chunk = one.chunk, cut.blocks = one.blocks;
    cut.depth = 2 * reach.z - 2 + one.places, cut.alike = x.alike && (one.nx + cut.segment_rows - 1) / cut.segment_rows > 2, cut.ring = x.ring, cut.threads = (cut.warps + 1) * 32;
    cut.apart = one.apart;
    choose_pitch(cut, one.value_bytes, one.nx, reach.x);
    cut.shared = rows_shared(cut, static_cast<int>(16 / one.value_bytes), reach);
    return cut.shared > chip.shared_per_block ? RowsCut{} : cut;
}

ColumnsCut columns_of(const TimedCut& one, const Chip& chip, bool packed, bool ring) {
    ColumnsCut cut;
    if (one.held_stages && !packed) return cut;
    cut.held_stages = one.held_stages;
    cut.segment_rows = one.columns_rows, cut.segments = one.columns_segments, cut.columns = one.columns, cut.stages = one.stages, cut.prefetch = one.prefetch, cut.blocks = one.columns_blocks, cut.ring = ring;
    cut.threads = cut.columns * cut.segments;
    cut.shared = columns_shared(cut, one.value_bytes, true, false);
    return cut.shared > chip.shared_per_block ? ColumnsCut{} : cut;
}

}  // namespace trifold::cuda::streaming
