// SPDX-License-Identifier: BSD-3-Clause
// Of systems of at most N rows those that faster kernels have marked, by a thread each, with pivots (thread/few_rows.cuh).
//
// Arrays: as pivoted_line.cuh has them, any strides. Overwritten: x of what is solved. What this does not solve is solved once more by pivoted_line.cuh, which names what cannot be.
// Who does what: a thread looks at one mark after another, the grid apart. Where a part of the matrix is the same for all, all threads read the same words, from the first level cache.
// Words per row: 4 read, 1 written, of marked systems; where these are scattered, pieces of 32 bytes. A byte read of every system, or of every tile.
// Limit: where few are marked, a warp has one of them or none, and takes as many instructions for it as for 32: some 60 a row and 200 for the rest.
#pragma once

#include "backends/cuda/tridiagonal/few_rows.cuh"
#include "backends/cuda/tridiagonal/pivoted.hpp"

namespace trifold::cuda {

template <class T>
struct FewMarkedJob {
    FewRowsJob<T> of;
    Marks marks;
    const unsigned long long* marked;  ///< how many, or null

    __device__ __forceinline__ bool wants(std::int64_t k) const {
        if (marks.of_tiles && !marks.of_tiles[of.levels.systems >> 31 ? k / marks.per_tile : static_cast<unsigned>(k) / marks.per_tile]) return false;
        return marks.of_systems[k];
    }
};

template <class T, int N>
__global__ void __launch_bounds__(few_rows_threads) few_marked_kernel(const __grid_constant__ FewMarkedJob<T> job) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    after_the_kernel_before();
    if (job.marked && *job.marked == 0) return;
    const FewRowsJob<T>& of = job.of;
    const int n = of.rows;
    const bool nested = of.levels.levels > 1;
    const std::int64_t step = gridDim.x * std::int64_t{few_rows_threads};
    unsigned rescued = 0;
    for (std::int64_t k = blockIdx.x * std::int64_t{few_rows_threads} + threadIdx.x; k < of.levels.systems; k += step) {
        if (!job.wants(k)) continue;
        std::int64_t index[4] = {k, 0, 0, 0};
        if (nested) indices_of(of.levels, k, index);
        FewRows<T, N> system;
#pragma unroll
        for (int i = 0; i < N; ++i) system.close(i);
        load_rows<T, N, false>(system.lower, of.lower, index, nested, 1, n - 1);
        load_rows<T, N, false>(system.diag, of.diag, index, nested, 0, n - 1);
        load_rows<T, N, false>(system.upper, of.upper, index, nested, 0, n - 2);
        load_rows<T, N, false>(system.rhs, of.rhs, index, nested, 0, n - 1);
        PivotedVerdict<T> verdict{Reason::exact, -1};
        if (system.solve()) {
            T* at = begin_of(of.x, index, nested);
#pragma unroll
            for (int i = 0; i < N; ++i) {
                if (i >= n) break;
                *at = system.rhs[i];
                at += of.x.row_stride;
            }
        } else {
            verdict = solve_one_of_few(&of, k);
        }
        if (verdict.reason == Reason::exact) ++rescued;
        else report_failure(of.outcome, of.status, of.levels.number_of(index), verdict.row, verdict.reason);
    }
    rescued = __reduce_add_sync(~0u, rescued);
    if (rescued && (threadIdx.x & 31) == 0) report_rescued(of.outcome, rescued);
#endif
}

}  // namespace trifold::cuda
