// SPDX-License-Identifier: BSD-3-Clause
// Ragged batches whose rows lie side by side, first without pivots: runs of whole systems, by a warp or by the warps of a block or a cluster. What is not good is marked, for ragged_marked.cuh.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/tridiagonal/batch.hpp"
#include "backends/cuda/tridiagonal/general/ragged_plan.hpp"
#include "problems/tridiagonal/system.hpp"

namespace trifold::cuda {

/// Whole systems that follow each other, and are solved together; or one of the parts of a long system.
struct alignas(16) RaggedRun {
    std::int64_t row = 0, system = 0;  ///< the first ones
    std::int64_t systems = 0;          ///< empty ones among them
    int rows = 0, part = 0;            ///< part: its place among the parts of all systems
};

/// A long system's parts follow each other in the list of parts.
struct RaggedParts {
    std::int64_t system = 0;
    int first = 0, count = 0;
};

/// Whether this is for them: rows of all five arrays lie side by side, and the device has the copy engine.
bool runs_take(const tridiagonal::System& system);

/// Fills in what concerns runs.
void limit_runs(RaggedLimits& limits, DType dtype);

/// Bytes of scratch: what kernels of runs write before anything is solved, and leave to those behind them.
std::size_t runs_scratch(const tridiagonal::System& system, const RaggedPlan& plan);

/// Enqueues: systems of at most plan.runs.longest rows are solved, or marked. offsets: on the device. scratch: runs_scratch bytes, at a multiple of 256. Resets the outcome, and writes the status of all systems as if none failed.
/// only_mark: all are left to kernels with pivots.
void solve_runs(const tridiagonal::System& system, const RaggedPlan& plan, bool only_mark, const std::int64_t* offsets, void* scratch, const BatchLaunch& launch);

/// Systems, in any order.
struct RaggedList {
    std::int64_t* systems = nullptr;
    unsigned* count = nullptr;

#ifdef __CUDACC__
    __device__ void add(std::int64_t system) const { systems[atomicAdd(count, 1u)] = system; }
#endif
};

/// What solve_runs leaves in scratch, for kernels with pivots; and room there for lists of what a warp has no room for: half a tile has, a tile, a block (or nothing on chip), a cluster.
struct RaggedLeft {
    const unsigned char* marks = nullptr;     ///< a byte per system: 1 where it is to be solved
    const unsigned long long* any = nullptr;  ///< zero where none is marked
    unsigned* tickets = nullptr;
    RaggedList small, middle, large, huge;
    std::int64_t most_cluster_rows = 0;       ///< of a system that a cluster has room for, and how many blocks it has
    int cluster_blocks = 1;
    std::int64_t most = 0;                    ///< systems of all lists together
};
RaggedLeft left_by_runs(const tridiagonal::System& system, const RaggedPlan& plan, void* scratch);

}  // namespace trifold::cuda
