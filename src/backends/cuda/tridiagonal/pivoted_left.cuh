// SPDX-License-Identifier: BSD-3-Clause
// What faster paths leave: one system, by one thread.
#pragma once

#include "backends/cuda/tridiagonal/pivoted_line.cuh"

namespace trifold::cuda {

/// Rare, and not to take registers from what is not.
template <class T>
__device__ __noinline__ PivotedVerdict<T> solve_left(const PivotedJob<T>& job, const std::int64_t (&index)[4], std::int64_t slot) {
    return solve_line(job, index, slot);
}

}  // namespace trifold::cuda
