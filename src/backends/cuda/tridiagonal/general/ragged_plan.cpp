// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/general/ragged_plan.hpp"

#include <algorithm>

namespace trifold::cuda {
namespace {

// Few systems that no block holds are faster one after the other, each by all of the device, than each by one block: some 20 µs against some ns a row.
constexpr std::int64_t few = 32;

// Tiles that a window fills: most of them are full then. Windows for every multiprocessor: blocks end at different times.
constexpr std::int64_t tiles_of_window = 4, windows_each = 8;

/// Of those that have room for it, the team of which most are on a multiprocessor. Blocks of a cluster wait for each other, and not every place is one for a cluster: each one more counts as a twentieth less.
RaggedTeam team_for(std::int64_t longest, const RaggedLimits& limits) {
    constexpr int fewest = 4;  // fewer are no faster, and their runs are less full
    longest = std::max<std::int64_t>(longest, fewest * limits.warp_rows);
    constexpr int most_blocks = 8;
    const auto parts = static_cast<int>((longest + limits.warp_rows - 1) / limits.warp_rows);
    RaggedTeam best;
    double most = 0;
    for (int blocks = 1; blocks <= std::min(parts, most_blocks); ++blocks) {
        const int warps = (parts + blocks - 1) / blocks;
        if (warps > limits.block_warps || warps * blocks > most_warps_of_team) continue;
        const double resident = static_cast<double>(parts) / blocks * limits.resident(warps, blocks) * (21 - blocks) / 20;
        if (resident > most) most = resident, best = {warps, blocks, warps * blocks * limits.warp_rows};
    }
    return best;
}

/// longest: of those that do not get launches of their own; alone: how many do.
RunsPlan plan_runs(std::int64_t rows, std::int64_t systems, std::int64_t longest, std::int64_t alone, const RaggedLimits& limits) {
    RunsPlan plan;
    plan.longest = longest, plan.least_listed = limits.tile_rows / limits.tile_warps;
    if (longest == 0) return plan;
    const auto at_most = [&](std::int64_t more_than) { return longest > more_than ? std::min(systems, rows / (more_than + 1)) : 0; };  // systems of more than so many rows
    plan.whole = static_cast<std::int64_t>(most_warps_of_team) * limits.warp_rows;
    plan.cut_systems = at_most(plan.whole), plan.most_parts = plan.cut_systems > 0 ? rows / limits.warp_rows + plan.cut_systems : 0;
    // Where most systems are short, long ones among them have runs for themselves: else a warp's work would be a team's.
    const double mean = std::max(1.0, static_cast<double>(rows) / static_cast<double>(systems));
    const std::int64_t longest_whole = std::min(longest, plan.whole);
    const bool some_long = longest > limits.warp_rows, together = some_long && 4 * mean >= limits.warp_rows;
    const RaggedTeam of_long = some_long ? team_for(longest_whole, limits) : RaggedTeam{};
    plan.team = together ? of_long : RaggedTeam{1, 1, limits.warp_rows};
    if (some_long && !together) plan.long_team = of_long, plan.long_systems = at_most(limits.warp_rows);
    // Small batches are for as many warps as there are.
    const std::int64_t each = rows / (static_cast<std::int64_t>(limits.multiprocessors) * limits.multiprocessor_warps) + 1;
    plan.capacity = some_long ? plan.team.rows : static_cast<int>(std::clamp<std::int64_t>(each, longest, limits.warp_rows));
    // So that most windows are as many runs as they hold.
    constexpr double runs_of_window = 4;
    plan.window = std::max<std::int64_t>(static_cast<std::int64_t>(runs_of_window * plan.capacity - (runs_of_window - 1) * mean), plan.capacity);
    plan.windows = (rows + plan.window - 1) / plan.window;
    plan.step = std::max<std::int64_t>(1, static_cast<std::int64_t>(plan.capacity / mean));
    // Of two runs that follow each other in a window one is half full, unless a system that is no run's is between.
    plan.most_runs = 2 * (rows / plan.capacity) + plan.windows + 2 + plan.long_systems + plan.cut_systems + alone;
    return plan;
}

}  // namespace

RaggedPlan plan_ragged(const tridiagonal::System& system, const RaggedLimits& limits) {
    RaggedPlan plan;
    const std::int64_t* const offsets = system.offsets;
    const std::int64_t systems = system.ragged_systems;
    const bool runs = limits.warp_rows > 0;
    plan.rows = offsets[systems] - offsets[0];
    std::int64_t longest = std::min(system.rows, least_rows_alone - 1);  // in runs
    if (runs ? system.rows >= least_rows_alone : system.rows > limits.tile_rows) {
        // What a block holds, or runs do, is on chip.
        const std::int64_t held = runs ? least_rows_alone - 1 : limits.chip_rows;
        std::int64_t on_chip = 0, longest_on_chip = 0, in_scratch = 0, longest_in_scratch = 0;
        longest = 0;
        const auto where = [](bool condition) { return -static_cast<std::int64_t>(condition); };  // lengths are anything: branches would be guessed wrong
        for (std::int64_t k = 0; k < systems; ++k) {
            const std::int64_t n = offsets[k + 1] - offsets[k], beyond_tile = where(n > limits.tile_rows), beyond = where(n > held), alone = where(n >= least_rows_alone);
            longest = std::max(longest, n & ~alone);
            on_chip -= beyond_tile & ~beyond, longest_on_chip = std::max(longest_on_chip, n & beyond_tile & ~beyond);
            plan.alone -= alone, in_scratch -= beyond & ~alone, longest_in_scratch = std::max(longest_in_scratch, n & beyond & ~alone);
        }
        const bool all_alone = in_scratch <= few;
        if (all_alone) plan.least_alone = std::min(least_rows_alone, held + 1), plan.alone += in_scratch;
        plan.singles = on_chip + (all_alone ? 0 : in_scratch);
        plan.longest_single = all_alone ? longest_on_chip : std::max(longest_on_chip, longest_in_scratch);
    } else if (system.rows > limits.tile_rows) {
        plan.singles = std::min(systems, plan.rows / limits.tile_rows), plan.longest_single = system.rows;
    }
    // Empty systems are looked at there too, so that windows are made in any case.
    const double mean = std::max(1.0, static_cast<double>(plan.rows) / static_cast<double>(systems));
    const auto by_rows = static_cast<std::int64_t>(static_cast<double>(tiles_of_window * limits.tile_rows) / mean);
    const std::int64_t by_blocks = systems / (windows_each * std::max(limits.multiprocessors, 1));
    plan.window = std::max<std::int64_t>(1, std::min(by_rows, by_blocks));
    plan.windows = (systems + plan.window - 1) / plan.window;
    if (runs) plan.runs = plan_runs(plan.rows, systems, longest, plan.alone, limits);
    return plan;
}

}  // namespace trifold::cuda
