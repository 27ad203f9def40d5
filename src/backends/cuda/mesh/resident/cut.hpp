// SPDX-License-Identifier: BSD-3-Clause
// Blocks, threads and segments for a mesh on chip.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/mesh/resident/layout.cuh"

namespace trifold::cuda::resident {

struct OnChip {
    std::size_t shared_per_block, shared_per_multiprocessor;
    bool clusters;
};

/// Fills in cluster, threads, slab_rows and cut of a plan that has the rest. `blocks`: that a multiprocessor is to hold. False: the
/// mesh does not fit. Depends on the shape of one mesh, never on how many there are: a mesh has the same bits in every batch.
bool choose_cut(Plan& plan, const OnChip& chip, int& blocks);

/// Whether few meshes may be dealt to more blocks than many: boxes in clusters, of one matrix for all lines. Bits depend on how lines are
/// cut into segments alone then: programs fuse nothing by what else a thread has (jit/compiler.hpp).
bool may_spread(const Plan& plan);
/// Deals the segments of a plan that choose_cut made to more blocks, where so few meshes are done sooner then. The segments stay, and with them all bits.
void spread(Plan& plan, const OnChip& chip, std::int64_t meshes, int& blocks);

}  // namespace trifold::cuda::resident
