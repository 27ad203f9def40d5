// SPDX-License-Identifier: BSD-3-Clause
// LU with pivoting of one system by the block that has found that it needs it, where a launch for that would cost more than all else.
//
// Arrays: as pivoted_line.cuh has them. Scratch: four words per row, where the system is put; the caches hold it.
// Who does what: the block's lanes share the system (pivoted_lanes.cuh); short ones, what these leave and what is singular are one thread's.
// Words per row: 4 read, 4 stored, then some 14 between the cache and the multiprocessor, 1 written. Limit: latency, rows/lanes steps of a reciprocal each, twice.
#pragma once

#include "backends/cuda/tridiagonal/pivoted_lanes.cuh"
#include "backends/cuda/tridiagonal/pivoted_line.cuh"

namespace trifold::cuda {

inline constexpr int least_rows_of_lanes = 64;

/// Shared memory of a block of at most 16 warps, which may have been something else before.
template <class T>
struct BlockPivoting {
    Equations<T> across[16];
    PivotedVerdict<T> verdict;
    int least;
};

/// By all threads of a block, none of which needs what was in `shared`; the verdict is known to all.
template <class T>
__device__ __forceinline__ PivotedVerdict<T> pivot_by_block(const Line<T>& lower, const Line<T>& diag, const Line<T>& upper, const Line<T>& rhs, const Line<T>& x, std::int64_t rows,
                                                            T* scratch, BlockPivoting<T>& shared) {
    constexpr int least_chunk = 8;
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x), n = static_cast<int>(rows);
    int lanes = 1;
    while (2 * lanes <= threads && 2 * lanes * least_chunk <= n) lanes *= 2;
    const bool together = lanes * least_chunk >= least_rows_of_lanes;
    __syncthreads();
    if (together) {
        if (thread == 0) shared.least = n + 1;
        for (int i = thread; i < n; i += threads) {
            scratch[i] = i > 0 ? lower[i] : T(0), scratch[n + i] = diag[i];
            scratch[2 * n + i] = i + 1 < n ? upper[i] : T(0), scratch[3 * n + i] = rhs[i];
        }
        __syncthreads();
        solve_by_lanes<false>(scratch, 0, BlockRows::whole(n), 1, lanes, &shared.least, shared.across);
        __syncthreads();
        const int least = shared.least;
        if (least > n)
            for (int i = thread; i < n; i += threads) x.at(i) = scratch[3 * n + i];
        if (least != n) return least > n ? PivotedVerdict<T>{Reason::exact, -1} : PivotedVerdict<T>{Reason::not_finite, least};
    }
    if (thread == 0) shared.verdict = solve_line(lower, diag, upper, rhs, x, rows, scratch, 1);
    __syncthreads();
    return shared.verdict;
}

/// System k. Here and below nothing that a kernel has in registers is passed by its address: it would need a stack.
template <class T>
__device__ __noinline__ PivotedVerdict<T> solve_system_by_block(const PivotedJob<T>* job, std::int64_t k, BlockPivoting<T>* shared) {
    std::int64_t index[4];
    job->levels.indices(k, index);
    return pivot_by_block(line_of(job->lower, index), line_of(job->diag, index), line_of(job->upper, index), line_of(job->rhs, index), line_of(job->x, index), job->rows, job->scratch, *shared);
}

/// Of arrays whose rows lie side by side.
template <class T>
__device__ __noinline__ PivotedVerdict<T> solve_arrays_by_block(T* lower, T* diag, T* upper, T* rhs, T* x, int rows, T* scratch, BlockPivoting<T>* shared) {
    const auto line = [](T* data) { return Line<T>{data, T(0), 1}; };
    return pivot_by_block(line(lower), line(diag), line(upper), line(rhs), line(x), rows, scratch, *shared);
}

}  // namespace trifold::cuda
