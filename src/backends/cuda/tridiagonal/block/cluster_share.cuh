// SPDX-License-Identifier: BSD-3-Clause
// A system that a cluster has found to need pivots, shared by its blocks in the same launch (device/two_pass_spread.cuh).
#pragma once

#include "backends/cuda/tridiagonal/block/warps_of_cluster.cuh"
#include "backends/cuda/tridiagonal/device/two_pass_spread.cuh"

namespace trifold::cuda::one_system {

/// By all threads of the cluster. Whether x is there; kept: where it is kept until it is, or null.
template <class T, int Threads>
__device__ __noinline__ bool share_arrays(T* lower, T* diag, T* upper, T* rhs, T* x, T* kept, int rows, two_pass::SpreadNews<T>* news, unsigned char* shared) {
    const auto line = [](T* data) { return Line<T>{data, T(0), 1}; };
    const auto meet = [] { meet_in_cluster(); };
    using Team = two_pass::BlockOf<Threads>;
    const int blocks = static_cast<int>(gridDim.x);
    two_pass::Spread spread;
    spread.rows = (rows + blocks - 1) / blocks, spread.segments = (rows + spread.rows - 1) / spread.rows;
    spread.deal_memory(static_cast<std::int64_t>(spread.rows) * pivot_words<Threads>(spread.rows) * sizeof(double) / sizeof(T), two_pass::SpreadNews<T>::corrects);
    const two_pass::Rows<T> system(line(lower), line(diag), line(upper), line(rhs), line(kept ? kept : x), rows);
    news->template clear<Team>(spread);
    __threadfence();
    __syncthreads();
    meet();
    if (!two_pass::share_rows<Team>(system, spread, *news, shared, meet)) return false;
    if (kept)
        for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < rows; i += blocks * Threads) x[i] = kept[i];
    return true;
}

}  // namespace trifold::cuda::one_system
