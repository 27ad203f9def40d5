// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/mesh/resident/cut.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
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
    for (int l = 0; l < plan.lines; ++l)
        if (plan.line[l].held) values += plan.factor_words(l) * plan.together(plan.line[l].axis) * plan.cut[plan.line[l].axis].rows;
    const int own = values * 4 / plan.vector + registers_besides;
    if (own > 255 || own * plan.threads > registers) return 0;
    const auto fit = static_cast<int>(chip.shared_per_multiprocessor / (bytes + 1024));
    return std::min({fit, registers / (own * plan.threads), most_warps * 32 / plan.threads, 16});
}

bool any_varies(const Plan& plan) { return std::any_of(plan.line, plan.line + plan.lines, [](const LinePlan& line) { return line.varies; }); }

/// Words that are moved per point of lines along an axis that have matrices of their own, whose factors are not in registers; and whether there are any at all.
int moved_of_factors(const Plan& plan, int axis, bool& any) {
    int moved = 0;
    any = false;
    for (int l = 0; l < plan.lines; ++l)
        if (plan.varies(l) && plan.line[l].axis == axis) any = true, moved += plan.line[l].held ? 0 : plan.line[l].symmetric ? 4 : 5;
    return moved;
}

/// The part of a block's warps that have lanes in two segments or more.
double mixed_warps(int segments, int across, int threads) {
    if (segments == 1 || across % 32 == 0) return 0;
    int mixed = 0;
    for (int first = 0; first < threads; first += 32) mixed += first / across != std::min(first + 31, threads - 1) / across ? 1 : 0;
    return 32.0 * mixed / threads;
}

/// Words of shared memory that the threads of a block move for the lines of an axis, in a step. A load of 16 bytes that all lanes share
/// costs as much as two words of each lane, and a word of another block's about eight; lanes of one warp in two segments meet in banks
/// (all of this and of `cost` fitted to what an H200 did).
double words(const Plan& plan, int axis) {
    const int threads = plan.threads, rows = plan.cut[axis].rows, together = plan.together(axis), segments = plan.segments(axis), across = plan.side_by_side(axis);
    const bool joined = segments > 1;
    const double mixed = mixed_warps(plan.cut[axis].segments, across, threads);
    const bool idle = across * plan.cut[axis].segments != threads || across * together != plan.lines_along(axis);
    bool varies = false;
    const int moved = moved_of_factors(plan, axis, varies);
    const double join = !joined || varies ? 0 : plan.crosses(axis) ? 50.0 * together : together * (12.0 + 3 * segments) + segments;
    const double factors = varies ? static_cast<double>(moved) * together : 0.5 * (joined ? 5 : 3);
    const double own = threads * (rows * (4.0 * together + factors) + join) + (varies && joined ? 900.0 * segments + (plan.crosses(axis) ? 30000 : 2000) : 0);
    const double chain = rows > 32 ? 1 + (rows - 32) / 512.0 : 1;  // of dependent operations
    const bool few_idle = plan.cluster == 1 && 10 * across * together <= 11 * plan.lines_along(axis);
    return own * chain * (1 + 0.3 * mixed) * (idle ? few_idle ? 1.2 : 1.3 : 1);
}

/// Few warps wait long, the more so for other blocks; and a warp more on one of the four schedulers than on the others.
double cost(const Plan& plan, int blocks) {
    double sum = 0;
    for (int axis = 0; axis < 3; ++axis)
        if (plan.mesh[axis] > 1) sum += words(plan, axis);
    const int warps = blocks * plan.threads / 32;
    const double few = plan.vector == 2 ? 4 : plan.cluster > 1 && !(any_varies(plan) && plan.mesh[2] == 1) ? 40 : 8;
    return sum * (1 + few / (warps * warps)) * (ceiling(warps, 4) * 4.0 / warps);
}

/// Time of a step of constant matrices, where `blocks` on a multiprocessor have a mesh each or a part of one, in words that they move: what chooses between clusters, and between all values in shared memory and turns. Few long
/// segments are best. Fitted to 98 cuts of planes and boxes that an H200 ran (10 % rms; it takes the best of those of a mesh, or one within 5 %, but for 192^2 in floats, 16 %).
double step_time(const Plan& plan, int blocks) {
    double sum = 0;
    for (int axis = 0; axis < 3; ++axis) {
        if (plan.mesh[axis] == 1) continue;
        const int threads = plan.threads, rows = plan.cut[axis].rows, together = plan.together(axis), segments = plan.segments(axis), across = plan.side_by_side(axis);
        const bool joined = segments > 1, idle = across * plan.cut[axis].segments != threads || across * together != plan.lines_along(axis);
        const double join = !joined ? 0 : plan.crosses(axis) ? 78.0 * together : together * (42 + 5.8 * segments + 16.0 * (plan.blocks_along(axis) - 1)) + 0.7 * segments;
        sum += threads * (rows * (10.2 * together + 0.7 * (joined ? 5 : 3)) + join) * (idle ? 1.15 : 1);
    }
    const int warps = blocks * plan.threads / 32;
    const double meetings = 4.2e4 * (plan.vector == 2 ? 0.8 : 1) * (plan.cluster > 1 ? (1 + plan.cluster / 3.0) * (1 + 0.3 * (plan.abreast - 1)) : 0.42);
    return blocks * sum * (1 + 6.9 / (warps * warps)) * std::pow(ceiling(warps, 4) * 4.0 / warps, 0.3) + meetings;
}

/// Meshes per time, up to a factor.
double speed_of(const Plan& plan, int blocks, double meshes) {
    constexpr double multiprocessors = 132;
    const int c = plan.cluster;
    const double in_clusters = c <= 2 ? 1 : c <= 8 ? 0.91 : 0.85;  // as an H200's are wired
    const double at_once = std::floor(multiprocessors * in_clusters / c);
    double best = 0;
    for (int side_by_side = 1; side_by_side <= blocks; ++side_by_side)
        best = std::max(best, meshes / (std::ceil(meshes / (at_once * side_by_side)) * step_time(plan, side_by_side)));
    return best;
}

/// The geometric mean of few meshes, more and very many, since how many there are must not change a mesh's bits.
double speed(const Plan& plan, int blocks) { return std::cbrt(speed_of(plan, blocks, 24) * speed_of(plan, blocks, 72) * speed_of(plan, blocks, 1e6)); }

bool cut_axis(Plan& plan, int axis, int segments) {
    const int n = plan.local(axis), rows = ceiling(n, segments);
    if (segments > plan.threads || (segments - 1) * rows >= n) return false;
    for (int l = 0; l < plan.lines; ++l)
        if (plan.varies(l) && plan.line[l].axis == axis && plan.line[l].ring && (segments < 2 || n % rows != 0)) return false;
    plan.cut[axis] = {segments, rows};
    return true;
}

/// The same, values changing threads in turns: as many rows of the slab in a turn as give every line within it its own threads.
bool cut_in_turns(Plan& plan, const OnChip& chip, int cluster, int& blocks) {
    if (any_varies(plan)) return false;
    const int slab = plan.slab(), n = plan.mesh[slab];
    plan.cluster = cluster, plan.slab_rows = ceiling(n, cluster);
    int ghosts = 1;
    for (int f = 0; f < plan.fields; ++f) ghosts = std::max(ghosts, plan.field[f].ghosts[slab]);
    if ((cluster - 1) * plan.slab_rows >= n || plan.last_rows() < ghosts) return false;
    plan.cut[slab] = {1, plan.slab_rows};
    double most = 0;
    Plan best;
    for (plan.turn_rows = 1; plan.turn_rows <= plan.slab_rows; ++plan.turn_rows)
        for (plan.threads = 32; plan.threads <= most_threads; plan.threads += 32) {
            bool whole = true;
            for (int axis = 0; axis < slab; ++axis) {
                const int lines = plan.lines_along(axis) / plan.slab_rows * plan.turn_rows;
                whole = whole && plan.threads % lines == 0 && cut_axis(plan, axis, plan.threads / lines);
            }
            if (!whole || !plan.takes_turns()) continue;
            const int fit = beside(plan, chip);
            if (fit == 0) continue;
            const double own = speed(plan, fit);
            if (own > most) most = own, best = plan, blocks = fit;
        }
    if (most > 0) plan = best;
    return most > 0;
}

/// Rings whose matrices vary are cut into equal segments.
bool rings_are_even(const Plan& plan, int axis) {
    for (int l = 0; l < plan.lines; ++l)
        if (plan.varies(l) && plan.line[l].axis == axis && plan.line[l].ring && (plan.segments(axis) < 2 || plan.last_segment(axis) != plan.cut[axis].rows)) return false;
    return true;
}

/// The best threads and segments for a cluster of this size; false: it does not fit.
bool cut_for(Plan& plan, const OnChip& chip, int cluster, int& blocks) {
    const int slab = plan.slab(), n = plan.mesh[slab];
    plan.cluster = cluster;
    const int most_values = any_varies(plan) ? 32 : 128;
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
                    if (!cut_axis(plan, axis, segments) || plan.together(axis) * plan.cut[axis].rows > most_values) continue;
                    const double own = words(plan, axis);
                    if (fewest == 0 || own < fewest) fewest = own, chosen = plan.cut[axis];
                }
                whole = whole && fewest > 0;
                plan.cut[axis] = chosen;
            }
            whole = whole && rings_are_even(plan, slab);
            for (LinePlan& line : plan.line) line.held = false;
            // Factors of the first so many line solves in registers.
            for (int l = -1; whole && l < plan.lines; ++l) {
                if (l >= 0 && !plan.varies(l)) continue;
                if (l >= 0) plan.line[l].held = true;
                const int fit = beside(plan, chip);
                if (fit == 0) continue;
                const double own = cost(plan, fit);
                if (least == 0 || own < least) least = own, best = plan, blocks = fit;
            }
        }
    }
    if (least > 0) plan = best;
    return least > 0;
}

constexpr int few = 8192;  // points of a block

/// In the smallest cluster that holds all values in shared memory, if there is one.
bool cut_for_any(Plan& plan, const OnChip& chip, int& blocks) {
    // A few thousand points per block are best; but clusters of more than eight leave multiprocessors without work.
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

/// `slabs` times `abreast` blocks with the segments of `whole`; false: they cannot be dealt so, or do not fit.
bool deal(const Plan& whole, const OnChip& chip, int slabs, int abreast, int threads, Plan& plan, int& blocks) {
    const int slab = whole.slab(), wide = slab - 1, along[3] = {wide == 0 ? abreast : 1, wide == 1 ? abreast : slab == 1 ? slabs : 1, slab == 2 ? slabs : 1};
    plan = whole;
    plan.cluster = slabs * abreast, plan.abreast = abreast, plan.threads = threads, plan.turn_rows = 0;
    for (int axis = 0; axis <= slab; ++axis) {
        const int all = whole.segments(axis), own = all / along[axis];
        if (all % along[axis] != 0 || own > threads) return false;
        plan.cut[axis] = {own, whole.cut[axis].rows};
        if (axis == slab) plan.slab_rows = slabs == 1 ? plan.mesh[slab] : own * whole.cut[axis].rows;
        if (axis == wide && abreast > 1 && plan.mesh[axis] != all * whole.cut[axis].rows) return false;
    }
    int ghosts[3] = {1, 1, 1};
    for (int f = 0; f < plan.fields; ++f)
        for (int axis = 0; axis < 3; ++axis) ghosts[axis] = std::max(ghosts[axis], plan.field[f].ghosts[axis]);
    if (plan.last_rows() < ghosts[slab] || plan.local(wide) < ghosts[wide]) return false;
    for (int axis = 0; axis <= slab; ++axis)
        if (plan.together(axis) * plan.cut[axis].rows > 128) return false;
    blocks = beside(plan, chip);
    return blocks > 0;
}

}  // namespace

bool may_spread(const Plan& plan) { return plan.mesh[2] > 1 && plan.cluster > 1 && !any_varies(plan); }

void spread(Plan& plan, const OnChip& chip, std::int64_t meshes, int& blocks) {
    constexpr int multiprocessors = 132;
    if (!may_spread(plan) || 2 * plan.cluster * meshes > multiprocessors) return;
    constexpr double worth = 1.1;  // what the estimate may be wrong by
    const Plan whole = plan;
    double most = worth * speed_of(plan, blocks, static_cast<double>(meshes));
    for (int slabs = 1; slabs <= 16; ++slabs)
        for (int abreast = 1; slabs * abreast <= 16; ++abreast)
            for (int threads = 32; threads <= most_threads; threads += 32) {
                Plan other;
                int fit = 0;
                if (slabs * abreast <= whole.cluster || !deal(whole, chip, slabs, abreast, threads, other, fit)) continue;
                if (const double own = speed_of(other, fit, static_cast<double>(meshes)); own > most) most = own, plan = other, blocks = fit;
            }
}

bool choose_cut(Plan& plan, const OnChip& chip, int& blocks) {
    const Plan whole = plan;
    // A mesh in one block needs no other.
    if (cut_for(plan, chip, 1, blocks)) return true;
    if (!chip.clusters) return false;
    plan = whole;
    Plan best;
    int best_blocks = 0;
    double most = 0;
    const auto consider = [&] {
        if (const double own = speed(plan, blocks); own > most) most = own, best = plan, best_blocks = blocks;
    };
    if (cut_for_any(plan, chip, blocks)) {
        // Boxes of a few points wait for little else than their own barriers.
        if (plan.mesh[2] > 1 && plan.cluster <= 8 && plan.mesh[0] * plan.mesh[1] * plan.slab_rows <= few) return true;
        consider();
    }
    for (const int cluster : {1, 2, 3, 4, 8, 16}) {
        plan = whole;
        if (cut_in_turns(plan, chip, cluster, blocks)) consider();
    }
    plan = most > 0 ? best : whole, blocks = best_blocks;
    return most > 0;
}

}  // namespace trifold::cuda::resident
