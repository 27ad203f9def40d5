// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "backends/cuda/mesh/streaming/cut.hpp"

namespace trifold::cuda::streaming {
namespace {

constexpr int most_columns = 512, most_beside_star = 256, most_warps = 16;  // threads of lines along y and z, also where those of lines along x want the registers of two; of lines along x, besides the one that brings planes

std::size_t up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

/// Sets of columns without a rest, so many of them that all blocks have some.
bool cut_sets(const Chip& chip, std::size_t value_bytes, const LinesOfMeshes& lines, int most, ColumnsCut& cut) {
    std::int64_t least = 0;
    const auto S = static_cast<std::int64_t>(cut.segments);
    if (S * cut.segment_rows != lines.rows) return false;
    for (int W = 128; W * value_bytes >= 64; W /= 2) {
        if (lines.inner % W || W * S > most || W * S % 32) continue;
        const std::int64_t sets = lines.count / W, turns = (sets + chip.multiprocessors - 1) / chip.multiprocessors;
        if (least == 0 || turns * W < least) least = turns * W, cut.columns = W;
    }
    cut.threads = static_cast<int>(cut.columns * S), cut.blocks = 1, cut.stages = 2;
    return least > 0;
}

}  // namespace

WholeCut cut_whole(const Chip& chip, std::size_t value_bytes, int nx, int ny, int nz, std::int64_t meshes, const Reach& reach, const RowsCut& shape, const std::vector<LinesOfMeshes>& lines) {
    const auto V = static_cast<std::size_t>(16 / value_bytes);
    WholeCut cut;
    if (nx % static_cast<int>(V)) return {};
    std::size_t kept = 0, work = 0;
    int threads = 0;
    for (const LinesOfMeshes& one : lines) {
        ColumnsCut columns = one.cut;
        if (!cut_sets(chip, value_bytes, one, shape.star ? most_beside_star : most_columns, columns)) return {};
        const auto S = static_cast<std::size_t>(columns.segments), R = static_cast<std::size_t>(columns.segment_rows);
        kept += columns_factors(columns, value_bytes, one.by_reach, one.alternates);
        work = std::max(work, static_cast<std::size_t>(columns.stages * columns.threads) * R + (2 * S + 1) * static_cast<std::size_t>(columns.columns));
        threads = std::max(threads, columns.threads);
        cut.columns.push_back(columns);
    }
    // Of lines along x: whatever lets blocks end soonest, in cycles as reckoned. Lanes and segments stay, for roundings depend on them. Doubles want the registers of two warps in each part of a multiprocessor: with a ninth warp 64^3 spilled, and took a fifth longer.
    const int most = value_bytes == 8 ? 7 : most_warps;
    double least = 0;
    for (const int K : {1, 2})
        for (int warps = 1; warps <= most; ++warps)
            for (int depth = 2 * reach.z + 2; depth <= 2 * reach.z + 4; ++depth) {
                if (shape.star && K != 2) continue;
                RowsCut rows = shape;
                rows.rows = K, rows.warps = warps, rows.depth = depth, rows.threads = (warps + 1) * 32, rows.blocks = 1;
                const int H = rows.slab();
                const std::size_t place = static_cast<std::size_t>(reach.fields) * (up(static_cast<std::size_t>(2 * reach.x), V) + static_cast<std::size_t>((H + 2 * reach.y) * rows.pitch));
                const std::size_t own = up(static_cast<std::size_t>(rows.factors(static_cast<int>(V))) + static_cast<std::size_t>(2 * (depth + warps)) * 8 / value_bytes, V);
                const std::size_t shared = (kept + own + std::max(work, static_cast<std::size_t>(depth) * place)) * value_bytes;
                if (shared > chip.shared_per_block) break;
                const std::int64_t slabs = (ny + H - 1) / H;
                // A warp's plane: its own chain, or what all warps of a block issue.
                const double plane = std::max(700.0 + 40.0 * K * rows.segment_rows, 18.0 * warps * K * rows.segment_rows) * (1 + 1.0 / ((depth - 2 * reach.z - 1) * 4));
                for (int parts = 1; parts <= nz; ++parts) {
                    rows.chunk = (nz + parts - 1) / parts;
                    const std::int64_t tasks = slabs * ((nz + rows.chunk - 1) / rows.chunk) * meshes, turns = (tasks + chip.multiprocessors - 1) / chip.multiprocessors;
                    const double cost = static_cast<double>(turns) * (rows.chunk * plane + reach.z * 400.0) + (1 + 2 * reach.z) * H * 8.0;
                    if (least == 0 || cost < least) least = cost, cut.rows = rows, cut.shared = shared;
                }
            }
    if (least == 0) return {};
    cut.threads = std::max(threads, cut.rows.threads);
    return cut;
}

}  // namespace trifold::cuda::streaming
