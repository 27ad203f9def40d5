// SPDX-License-Identifier: BSD-3-Clause
// What single precision has no digits of is solved in double; what is found goes back.
#pragma once

#include "backends/cuda/runtime/outcome.hpp"
#include "backends/cuda/tridiagonal/pivoted_verdict.cuh"

namespace trifold::cuda {

/// store(i, x) for all rows, unless one is too large for its type: then nothing is stored, and the first such row is named. By all threads of a block; shared: a word.
template <class Store>
__device__ __forceinline__ void store_narrowed(const double* x, int rows, int* shared, DeviceOutcome* outcome, std::int8_t* status, std::int64_t number, const Store& store) {
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    int least = rows;
    for (int i = thread; i < rows; i += threads)
        if (!(static_cast<float>(x[i]) * 0.0f == 0.0f)) least = min(least, i);
    __syncthreads();
    if (thread == 0) *shared = rows;
    __syncthreads();
    if (least < rows) atomicMin(shared, least);
    __syncthreads();
    if (*shared < rows) {
        if (thread == 0) report_failure(outcome, status, number, *shared, Reason::not_finite);
        return;
    }
    if (thread == 0) report_rescued(outcome);
    for (int i = thread; i < rows; i += threads) store(i, static_cast<float>(x[i]));
}

}  // namespace trifold::cuda
