// SPDX-License-Identifier: BSD-3-Clause
// What a kernel needs that is the only launch of a solve: no other has reset the outcome, no other solves what is marked.
#pragma once

#include "backends/cuda/tridiagonal/pivoted_block.cuh"

namespace trifold::cuda {

template <class T>
struct OneLaunch {
    PivotedJob<T> rest;
    DeviceOutcome fresh;

    /// By one block, before any other thread that it waits for changes the outcome.
    __device__ __forceinline__ void reset() const {
        if (threadIdx.x == 0) *rest.outcome = fresh, __threadfence();
        if (rest.status)
            for (std::int64_t k = threadIdx.x; k < rest.levels.systems; k += blockDim.x) {
                std::int64_t index[4];
                rest.levels.indices(k, index);
                rest.status[rest.levels.number_of(index)] = static_cast<std::int8_t>(Reason::exact);
            }
    }

    /// By the block that has set the marks, whose shared memory is needed for nothing else any more.
    __device__ __forceinline__ void rescue(BlockPivoting<T>& shared) const {
        __syncthreads();
        if (rest.rows < least_rows_of_lanes) {
            for (std::int64_t slot = threadIdx.x; slot < rest.slots; slot += blockDim.x) solve_lines(rest, slot);
            return;
        }
        for (std::int64_t k = 0; k < rest.levels.systems; ++k) {
            if (!rest.wanted(k)) continue;
            const PivotedVerdict<T> verdict = solve_system_by_block(&rest, k, &shared);
            if (threadIdx.x != 0) continue;
            if (verdict.reason == Reason::exact) {
                report_rescued(rest.outcome);
                continue;
            }
            std::int64_t index[4];
            rest.levels.indices(k, index);
            report_failure(rest.outcome, rest.status, rest.levels.number_of(index), verdict.row, verdict.reason);
        }
    }
};

}  // namespace trifold::cuda
