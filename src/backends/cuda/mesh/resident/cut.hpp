// SPDX-License-Identifier: BSD-3-Clause
// Blocks, threads and segments for a mesh on chip.
#pragma once

#include <cstddef>

#include "backends/cuda/mesh/resident/layout.cuh"

namespace trifold::cuda::resident {

struct OnChip {
    std::size_t shared_per_block, shared_per_multiprocessor;
    bool clusters;
};

/// Fills in cluster, threads, slab_rows and cut of a plan that has the rest. `blocks`: that a multiprocessor is to hold. False: the
/// mesh does not fit. Depends on the shape of one mesh, never on how many there are: a mesh has the same bits in every batch.
bool choose_cut(Plan& plan, const OnChip& chip, int& blocks);

}  // namespace trifold::cuda::resident
