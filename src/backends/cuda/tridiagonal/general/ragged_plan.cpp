// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/general/ragged_plan.hpp"

#include <algorithm>

namespace trifold::cuda {
namespace {

// Few systems that no block holds are faster one after the other, each by all of the device, than each by one block: some 20 µs against some ns a row.
constexpr std::int64_t few = 32;

// Tiles that a window fills: most of them are full then. Windows for every multiprocessor: blocks end at different times.
constexpr std::int64_t tiles_of_window = 4, windows_each = 8;

}  // namespace

RaggedPlan plan_ragged(const tridiagonal::System& system, const RaggedLimits& limits) {
    RaggedPlan plan;
    const std::int64_t* const offsets = system.offsets;
    const std::int64_t systems = system.ragged_systems;
    plan.rows = offsets[systems] - offsets[0];
    if (system.rows > limits.tile_rows) {
        std::int64_t no_block_holds = 0, longest_on_chip = 0, longest_in_scratch = 0, on_chip = 0, in_scratch = 0;
        for (std::int64_t k = 0; k < systems; ++k) {
            const std::int64_t n = offsets[k + 1] - offsets[k];
            if (n <= limits.tile_rows) continue;
            if (n <= limits.chip_rows) {
                ++on_chip, longest_on_chip = std::max(longest_on_chip, n);
            } else {
                ++no_block_holds;
                if (n < least_rows_alone) ++in_scratch, longest_in_scratch = std::max(longest_in_scratch, n);
            }
        }
        const bool all_alone = in_scratch <= few;
        if (all_alone) plan.least_alone = std::min(least_rows_alone, limits.chip_rows + 1);
        plan.alone = all_alone ? no_block_holds : no_block_holds - in_scratch;
        plan.singles = on_chip + (all_alone ? 0 : in_scratch);
        plan.longest_single = all_alone ? longest_on_chip : std::max(longest_on_chip, longest_in_scratch);
    }
    // Empty systems are looked at there too, so that windows are made in any case.
    const double mean = std::max(1.0, static_cast<double>(plan.rows) / static_cast<double>(systems));
    const auto by_rows = static_cast<std::int64_t>(static_cast<double>(tiles_of_window * limits.tile_rows) / mean);
    const std::int64_t by_blocks = systems / (windows_each * std::max(limits.multiprocessors, 1));
    plan.window = std::max<std::int64_t>(1, std::min(by_rows, by_blocks));
    plan.windows = (systems + plan.window - 1) / plan.window;
    return plan;
}

}  // namespace trifold::cuda
