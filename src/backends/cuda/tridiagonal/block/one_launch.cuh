// SPDX-License-Identifier: BSD-3-Clause
// What a kernel needs that is the only launch of a solve: no other has reset the outcome, no other solves what is marked.
#pragma once

#include "backends/cuda/tridiagonal/pivoted_line.cuh"

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

    /// By the warp that has set the marks.
    __device__ __forceinline__ void rescue(int lane) const {
        for (std::int64_t slot = lane; slot < rest.slots; slot += 32) solve_lines(rest, slot);
    }
};

}  // namespace trifold::cuda
