// SPDX-License-Identifier: BSD-3-Clause
// Both pivoted passes, the correction and LU in one launch, for what is left of systems that other kernels have tried.
#pragma once

#include <cooperative_groups.h>

#include "backends/cuda/tridiagonal/device/two_pass_check.cuh"
#include "backends/cuda/tridiagonal/device/two_pass_finish.cuh"
#include "backends/cuda/tridiagonal/device/two_pass_levels.cuh"
#include "backends/cuda/tridiagonal/device/two_pass_reduce.cuh"
#include "backends/cuda/tridiagonal/pivoted_block.cuh"
#include "backends/cuda/tridiagonal/pivoted_line.cuh"

namespace trifold::cuda::two_pass {

/// All blocks of the launch, which wait for each other: a grid whose launch is cooperative, or one cluster, which waits in a quarter of the time.
template <bool Cluster>
__device__ __forceinline__ void meet() {
    if constexpr (Cluster) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
        cooperative_groups::this_cluster().sync();
#endif
    } else {
        cooperative_groups::this_grid().sync();
    }
}

/// All passes over the systems that are to be solved, in one launch that ends at once where there is none: kernels one by one would cost what comes
/// before more than they are worth. `to_correct` marks what is to be done in both turns.
template <class T, bool again, bool Cluster>
__device__ void passes_of(const Job<T>& job, unsigned char* shared) {
    const Cut& cut = job.cut;
    const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x, threads = static_cast<std::int64_t>(gridDim.x) * block_threads;
    const int last = cut.levels - 1;
    // call(system, item), items 0 … each-1 of every system shared out.
    const auto share = [&](std::int64_t each, std::int64_t from, std::int64_t step, auto call) {
        for (std::int64_t i = from; i < each * job.levels.systems; i += step) {
            const std::int64_t k = i / each;
            if (job.marks[k] == to_correct) call(k, i - k * each);
        }
    };
    share((cut.count[1] + block_threads - 1) / block_threads, blockIdx.x, gridDim.x,
          [&](std::int64_t k, std::int64_t block) { reduce_block<T, again>(job, k, block, *reinterpret_cast<Staging<T>*>(shared)); });
    int top = 1;  // from here on a block waits for nobody but itself
    while (top < last && cut.count[top + 1] > 2 * block_threads) ++top;
    for (int level = 1; level < top; ++level) {
        meet<Cluster>();
        share(cut.count[level + 1], thread, threads, [&](std::int64_t k, std::int64_t g) { merge_group(job, k, level, g); });
    }
    meet<Cluster>();
    share(1, blockIdx.x, gridDim.x, [&](std::int64_t k, std::int64_t) { solve_levels(job, k, top); });
    for (int level = top - 1; level >= 0; --level) {
        meet<Cluster>();
        share(cut.count[level + 1], thread, threads, [&](std::int64_t k, std::int64_t g) { spread_group(job, k, level, g); });
    }
    meet<Cluster>();
    share((cut.count[0] + tile_chunks - 1) / tile_chunks, blockIdx.x, gridDim.x, [&](std::int64_t k, std::int64_t number) {
        if (!job.found[k].irregular) finish_tile<T, again>(job, Rows<T>(job, k), k, Tile<T>(job, reinterpret_cast<T*>(shared), number));
        __syncthreads();
    });
    meet<Cluster>();
    if constexpr (again) {
        for (std::int64_t k = 0; k < job.levels.systems; ++k)
            if (job.marks[k] == to_correct) residuals_of(job, k);
        meet<Cluster>();
    }
    share(1, thread, threads, [&](std::int64_t k, std::int64_t) { judge(job, k, again); });
    meet<Cluster>();
}

/// What is left of one system, by LU, by one block.
template <class T>
__device__ __forceinline__ void solve_by_block(const PivotedJob<T>& rest, BlockPivoting<T>& shared) {
    std::int64_t index[4];
    rest.levels.indices(0, index);
    const PivotedVerdict<T> verdict = solve_line_by_block(line_of(rest.lower, index), line_of(rest.diag, index), line_of(rest.upper, index), line_of(rest.rhs, index),
                                                          line_of(rest.x, index), rest.rows, rest.scratch, shared);
    if (threadIdx.x != 0) return;
    if (verdict.reason == Reason::exact) report_rescued(rest.outcome);
    else report_failure(rest.outcome, rest.status, rest.levels.number_of(index), verdict.row, verdict.reason);
}

template <class T, bool Cluster>
__global__ void __launch_bounds__(block_threads, 3) chain_kernel(const __grid_constant__ Job<T> job, const __grid_constant__ PivotedJob<T> rest) {
    extern __shared__ double shared[];
    after_the_kernel_before();
    const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x, threads = static_cast<std::int64_t>(gridDim.x) * block_threads;
    const bool unwanted = job.unwanted();
    for (std::int64_t k = thread; k < job.levels.systems; k += threads) {
        job.marks[k] = !unwanted && job.was_left(k) ? to_correct : accepted;  // what comes last looks at marks alone
        job.found[k] = {};
    }
    if (unwanted) return;
    meet<Cluster>();
    // Whether any of few systems is still to be solved, by all threads alike; many are not looked at.
    const auto some_left = [&] {
        constexpr int few = 8;
        bool any = job.levels.systems > few;
        for (int k = 0; k < few && k < job.levels.systems; ++k) any |= *const_cast<volatile unsigned char*>(job.marks + k) != accepted;
        return any;
    };
    passes_of<T, false, Cluster>(job, reinterpret_cast<unsigned char*>(shared));
    const bool again = some_left();
    if (again) passes_of<T, true, Cluster>(job, reinterpret_cast<unsigned char*>(shared));
    if (job.kept_x) {
        for (std::int64_t k = 0; k < job.levels.systems; ++k)
            if (job.was_left(k) && job.marks[k] == accepted) copy_of(job, k);
        if (again) meet<Cluster>();  // LU takes its memory
    }
    if (!again) return;
    if constexpr (Cluster) {
        if (blockIdx.x == 0 && job.marks[0] != accepted) solve_by_block(rest, *reinterpret_cast<BlockPivoting<T>*>(shared));
    } else {
        if (thread < rest.slots) solve_lines(rest, thread);
    }
}

}  // namespace trifold::cuda::two_pass
