// SPDX-License-Identifier: BSD-3-Clause
// From the canonical system to a batch job: which level becomes lanes, how wide a block is, how many rows are kept at a time.
#pragma once

#include "backends/cpu/tridiagonal/batch_job.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::cpu {

/// The levels of a system, one of them taken as lanes.
struct BatchShape {
    int lane_level = 0;
    int outer_levels = 0;
    int outer_level[3] = {};
    std::int64_t outer_extent[3] = {1, 1, 1};
    std::int64_t weight[4] = {};  ///< of each level in a system's index

    /// The index that system_at takes.
    std::int64_t index(std::int64_t outer, std::int64_t lane) const noexcept {
        std::int64_t index = lane * weight[lane_level];
        for (int l = outer_levels - 1; l >= 0; --l) {
            index += outer % outer_extent[l] * weight[outer_level[l]];
            outer /= outer_extent[l];
        }
        return index;
    }
};

BatchShape shape_of(const tridiagonal::System& system);

template <class T>
BatchJob<T> job_of(const tridiagonal::System& system, const BatchShape& shape, tridiagonal::Algorithm algorithm);

}  // namespace trifold::cpu
