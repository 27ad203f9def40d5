// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/mesh/resident/cut.hpp"

#include <algorithm>
#include <initializer_list>

namespace trifold::cuda::resident {
namespace {

constexpr int registers = 65536, registers_besides = 64, most_threads = 1024, most_warps = 64;

/// Blocks that run beside each other on a multiprocessor; 0: not one.
int beside(const Plan& plan, const OnChip& chip) {
    const std::size_t bytes = static_cast<std::size_t>(plan.elements()) * 16 / static_cast<std::size_t>(plan.vector);
    if (bytes > chip.shared_per_block) return 0;
    int values = 1;
    for (int axis = 0; axis < 3; ++axis)
        if (axis == 0 || plan.mesh[axis] > 1) values = std::max(values, plan.together(axis) * plan.cut[axis].rows);
    const int own = values * 4 / plan.vector + registers_besides;
    if (own > 255 || own * plan.threads > registers) return 0;
    const auto fit = static_cast<int>(chip.shared_per_multiprocessor / (bytes + 1024));
    return std::min({fit, registers / (own * plan.threads), most_warps * 32 / plan.threads, 16});
}

/// Words of shared memory that the threads of a block move for the lines of an axis, in a step. A load of 16 bytes that all lanes share
/// costs as much as two words of each lane, and a word of another block's about eight; lanes of one warp in two segments meet in banks
/// (all of this and of `cost` fitted to what an H200 did).
double words(const Plan& plan, int axis) {
    const int threads = plan.threads, rows = plan.cut[axis].rows, together = plan.together(axis), segments = plan.segments(axis), across = plan.side_by_side(axis);
    const bool joined = segments > 1, mixed = plan.cut[axis].segments > 1 && across % 32 != 0;
    const bool idle = across * plan.cut[axis].segments != threads || across * together != plan.lines_along(axis);
    const double join = !joined ? 0 : plan.crosses(axis) ? 50.0 * together : together * (2.0 + 3 * segments) + segments;
    const double own = threads * (rows * (4.0 * together + 0.5 * (joined ? 5 : 3)) + join);
    const double chain = rows > 32 ? 1 + (rows - 32) / 128.0 : 1;  // of dependent operations
    return own * chain * (mixed ? across < 32 ? 1.3 : 1.1 : 1) * (idle ? 1.3 : 1);
}

/// Few warps wait long, the more so for other blocks; and a warp more on one of the four schedulers than on the others.
double cost(const Plan& plan, int blocks) {
    double sum = 0;
    for (int axis = 0; axis < 3; ++axis)
        if (plan.mesh[axis] > 1) sum += words(plan, axis);
    const int warps = blocks * plan.threads / 32;
    const double few = plan.vector == 2 ? 4 : plan.cluster > 1 ? 40 : 8;
    return sum * (1 + few / (warps * warps)) * (ceiling(warps, 4) * 4.0 / warps);
}

bool cut_axis(Plan& plan, int axis, int segments) {
    const int n = plan.local(axis), rows = ceiling(n, segments);
    if (segments > plan.threads || (segments - 1) * rows >= n) return false;
    plan.cut[axis] = {segments, rows};
    return true;
}

/// The best threads and segments for a cluster of this size; false: it does not fit.
bool cut_for(Plan& plan, const OnChip& chip, int cluster, int& blocks) {
    const int slab = plan.slab(), n = plan.mesh[slab];
    plan.cluster = cluster;
    int ghosts = 1;
    for (int f = 0; f < plan.fields; ++f) ghosts = std::max(ghosts, plan.field[f].ghosts[slab]);
    double least = 0;
    Plan best;
    for (int across = 1; across <= 16; ++across) {
        // Segments along the slabs: all but the last of a line have the same length.
        const int rows = ceiling(n, cluster * across);
        plan.slab_rows = cluster == 1 ? n : rows * across;
        if ((cluster * across - 1) * rows >= n || plan.last_rows() < ghosts) continue;
        for (plan.threads = 32; plan.threads <= most_threads; plan.threads += 32) {
            if (across > plan.threads) continue;
            plan.cut[slab] = {across, rows};
            bool whole = true;
            for (int axis = 0; axis < 3; ++axis) {
                if (axis == slab) continue;
                AxisCut chosen;
                double fewest = 0;
                for (int segments = 1; segments <= std::min(plan.mesh[axis], 64); ++segments) {
                    if (!cut_axis(plan, axis, segments) || plan.together(axis) * plan.cut[axis].rows > 128) continue;
                    const double own = words(plan, axis);
                    if (fewest == 0 || own < fewest) fewest = own, chosen = plan.cut[axis];
                }
                whole = whole && fewest > 0;
                plan.cut[axis] = chosen;
            }
            const int fit = whole ? beside(plan, chip) : 0;
            if (fit == 0) continue;
            const double own = cost(plan, fit);
            if (least == 0 || own < least) least = own, best = plan, blocks = fit;
        }
    }
    if (least > 0) plan = best;
    return least > 0;
}

}  // namespace

bool choose_cut(Plan& plan, const OnChip& chip, int& blocks) {
    // A mesh in one block needs no other. A few thousand points per block are best in a cluster; but clusters of more than eight leave
    // multiprocessors without work.
    constexpr int few = 8192;
    if (cut_for(plan, chip, 1, blocks)) return true;
    if (!chip.clusters) return false;
    const Plan whole = plan;
    for (const bool any : {false, true})
        for (const int cluster : {2, 4, 8, 16}) {
            plan = whole;
            const int points = ceiling(plan.mesh[0] * plan.mesh[1] * plan.mesh[2], cluster);
            if (any ? cluster < 8 : cluster > 8 || points > few) continue;
            if (cut_for(plan, chip, cluster, blocks)) return true;
        }
    plan = whole;
    for (const int cluster : {4, 2})
        if (cut_for(plan, chip, cluster, blocks)) return true;
    return false;
}

}  // namespace trifold::cuda::resident
