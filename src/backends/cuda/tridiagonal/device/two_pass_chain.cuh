// SPDX-License-Identifier: BSD-3-Clause
// Both pivoted passes, the correction and LU in one launch, for what is left of systems that other kernels have tried.
#pragma once

#include <cooperative_groups.h>

#include "backends/cuda/tridiagonal/device/two_pass_check.cuh"
#include "backends/cuda/tridiagonal/device/two_pass_finish.cuh"
#include "backends/cuda/tridiagonal/device/two_pass_levels.cuh"
#include "backends/cuda/tridiagonal/device/two_pass_reduce.cuh"
#include "backends/cuda/tridiagonal/pivoted_line.cuh"

namespace trifold::cuda::two_pass {

/// All passes over the systems that are to be solved, in one launch that ends at once where there is none: kernels one by one would cost what comes
/// before more than they are worth. Blocks wait for each other, so the launch is cooperative. `to_correct` marks what is to be done in both turns.
template <class T, bool again>
__device__ void passes_of(const Job<T>& job, const cooperative_groups::grid_group& grid, unsigned char* shared) {
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
    for (int level = 1; level < last; ++level) {
        grid.sync();
        share(cut.count[level + 1], thread, threads, [&](std::int64_t k, std::int64_t g) { merge_group(job, k, level, g); });
    }
    grid.sync();
    share(1, thread, threads, [&](std::int64_t k, std::int64_t) { solve_top(job, k); });
    for (int level = last - 1; level >= 0; --level) {
        grid.sync();
        share(cut.count[level + 1], thread, threads, [&](std::int64_t k, std::int64_t g) { spread_group(job, k, level, g); });
    }
    grid.sync();
    share((cut.count[0] + tile_chunks - 1) / tile_chunks, blockIdx.x, gridDim.x, [&](std::int64_t k, std::int64_t number) {
        if (!job.found[k].irregular) finish_tile<T, again>(job, Rows<T>(job, k), k, Tile<T>(job, reinterpret_cast<T*>(shared), number));
        __syncthreads();
    });
    grid.sync();
    if constexpr (again) {
        for (std::int64_t k = 0; k < job.levels.systems; ++k)
            if (job.marks[k] == to_correct) residuals_of(job, k);
        grid.sync();
    }
    share(1, thread, threads, [&](std::int64_t k, std::int64_t) { judge(job, k, again); });
    grid.sync();
}

template <class T>
__global__ void __launch_bounds__(block_threads, 3) chain_kernel(const __grid_constant__ Job<T> job, const __grid_constant__ PivotedJob<T> rest) {
    extern __shared__ double shared[];
    after_the_kernel_before();
    const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x, threads = static_cast<std::int64_t>(gridDim.x) * block_threads;
    const bool unwanted = job.unwanted();
    for (std::int64_t k = thread; k < job.levels.systems; k += threads) {
        job.marks[k] = !unwanted && job.was_left(k) ? to_correct : accepted;  // what comes last looks at marks alone
        job.found[k] = {};
    }
    if (unwanted) return;
    grid.sync();
    passes_of<T, false>(job, grid, reinterpret_cast<unsigned char*>(shared));
    passes_of<T, true>(job, grid, reinterpret_cast<unsigned char*>(shared));
    if (job.kept_x) {
        for (std::int64_t k = 0; k < job.levels.systems; ++k)
            if (job.was_left(k) && job.marks[k] == accepted) copy_of(job, k);
        grid.sync();  // LU takes its memory
    }
    if (thread < rest.slots) solve_lines(rest, thread);
}

}  // namespace trifold::cuda::two_pass
