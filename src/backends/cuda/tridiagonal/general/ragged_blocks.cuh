// SPDX-License-Identifier: BSD-3-Clause
// Who solves what of a ragged batch by whole blocks: tiles of several systems, with and without pivots (ragged_tile.cuh); and with pivots, a system by a block, in shared memory or in scratch, or by a cluster of blocks that share its rows
// (pivoted_cluster.cuh).
#pragma once

#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/general/ragged_runs.hpp"
#include "backends/cuda/tridiagonal/general/ragged_tile.cuh"
#include "backends/cuda/tridiagonal/pivoted_block.cuh"
#include "backends/cuda/tridiagonal/pivoted_cluster.cuh"

namespace trifold::cuda {

inline constexpr int tile_threads = 128;

// Registers allow two blocks on a multiprocessor in double precision, and shared memory does up to half its rows.
template <class T>
inline constexpr int single_threads = sizeof(T) == 8 ? 256 : 512;

// So many rows that four blocks (FP32 five) share a multiprocessor: while some compute, others wait for memory.
template <class T>
inline constexpr int tile_rows = tile_threads * (sizeof(T) == 8 ? 9 : 17);

template <class T>
using Tile = RaggedTile<T, tile_threads, 8 * tile_threads>;
template <class T>
using Single = RaggedTile<T, single_threads<T>, 1>;

template <class T>
__global__ void __launch_bounds__(tile_threads, 4) ragged_tile_kernel(const __grid_constant__ RaggedJob<T> job) {
    extern __shared__ __align__(16) unsigned char ragged_memory[];
    const Tile<T> tile{job, job.tile_rows, ragged_memory};
    for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * job.window; first < job.systems; first += static_cast<std::int64_t>(gridDim.x) * job.window)
        tile.solve_all(first, min(first + job.window, job.systems));
}

/// A system that no shared memory holds, with pivots. By all threads of a block.
template <class T>
__device__ __noinline__ void solve_in_scratch(const RaggedJob<T>* job, std::int64_t k, std::int64_t row, int n, BlockPivoting<T>* shared) {
    T* const scratch = job->scratch + static_cast<std::int64_t>(blockIdx.x) * job->scratch_rows * (job->adds ? 5 : 4);
    const Line<T> x = line_from(job->x, row), found = job->adds ? Line<T>{scratch + 4 * static_cast<std::int64_t>(n), T(0), 1} : x;
    const PivotedVerdict<T> verdict = pivot_by_block(line_from(job->lower, row), line_from(job->diag, row), line_from(job->upper, row), line_from(job->rhs, row), found, n, scratch, *shared);
    __syncthreads();  // all of `found` is there
    if (verdict.reason == Reason::exact && job->adds)
        for (int i = static_cast<int>(threadIdx.x); i < n; i += single_threads<T>) x.at(i) += found[i];
    if (threadIdx.x == 0) {
        if (verdict.reason != Reason::exact) report_failure(job->outcome, job->status, k, verdict.row, verdict.reason);
        else if (!job->pivots) report_rescued(job->outcome);
    }
    __syncthreads();
}

/// Systems k, k + blocks, … of a block, so that long ones beside each other are those of different blocks.
template <class T>
__global__ void __launch_bounds__(single_threads<T>, sizeof(T) == 8 ? 2 : 1) ragged_single_kernel(const __grid_constant__ RaggedJob<T> job) {
    constexpr int threads = single_threads<T>;
    extern __shared__ __align__(16) unsigned char ragged_memory[];
    __shared__ bool wanted[threads];
    const Single<T> tile{job, job.chip_rows, ragged_memory};
    const auto solve = [&](std::int64_t k) {
        const std::int64_t row = job.offsets[k];
        const int n = static_cast<int>(job.offsets[k + 1] - row);
        if (n <= job.chip_rows) tile.solve_one(k, row, n);
        else solve_in_scratch(&job, k, row, n, reinterpret_cast<BlockPivoting<T>*>(ragged_memory));
    };
    if (job.list) {
        const unsigned count = *job.listed;
        for (unsigned i = blockIdx.x; i < count; i += gridDim.x) solve(job.list[i]);
        return;
    }
    const auto system = [&](std::int64_t looked, int thread) { return blockIdx.x + (looked + thread) * gridDim.x; };
    for (std::int64_t looked = 0; system(looked, 0) < job.systems; looked += threads) {
        const std::int64_t own = system(looked, static_cast<int>(threadIdx.x));
        const std::int64_t its_rows = own < job.systems ? job.offsets[own + 1] - job.offsets[own] : 0;
        const bool mine = its_rows > job.tile_rows && its_rows < job.least_alone;
        wanted[threadIdx.x] = mine;
        if (!__syncthreads_or(mine)) continue;
        for (int t = 0; t < threads; ++t) {
            if (wanted[t]) solve(system(looked, t));
        }
        __syncthreads();  // `wanted` is written again
    }
}

/// Of the list, a system by each cluster, its rows shared by the blocks. What it leaves is listed for ragged_single_kernel.
template <class T>
__global__ void __launch_bounds__(single_threads<T>, 1) ragged_cluster_kernel(const __grid_constant__ RaggedJob<T> job, const __grid_constant__ RaggedLeft left) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    constexpr int threads = single_threads<T>;
    extern __shared__ __align__(16) unsigned char ragged_memory[];
    after_the_kernel_before();
    const Single<T> tile{job, job.chip_rows, ragged_memory};
    const int blocks = left.cluster_blocks, thread = static_cast<int>(threadIdx.x), rank = static_cast<int>(rank_in_cluster());
    auto* const slot = reinterpret_cast<Equations<T>*>(tile.firsts());
    T* const own = tile.array(0);
    for (unsigned i = blockIdx.x / blocks; i < *left.huge.count; i += gridDim.x / blocks) {
        const std::int64_t k = left.huge.systems[i], row = job.offsets[k];
        const int n = static_cast<int>(job.offsets[k + 1] - row), each = (n + blocks - 1) / blocks, first = min(rank * each, n), count = min(each, n - first);
        const Line<T>* const lines[4] = {&job.lower, &job.diag, &job.upper, &job.rhs};
        meet_in_cluster();  // what it had is not read any more
        for (int m = 0; m < 4; ++m) {
            const Line<T> from = line_from(*lines[m], row + first);
            for (int r = thread; r < count; r += threads)
                if ((m != 0 || first + r > 0) && (m != 2 || first + r + 1 < n)) copy_async(shared_address(own + m * each + r), from.data + r);
        }
        if (thread == 0) {
            tile.verdicts()[0] = n + 1;
            if (first == 0) own[0] = 0;
            if (first + count == n && count > 0) own[2 * each + count - 1] = 0;
        }
        await_copies();
        __syncthreads();
        solve_by_lanes<true>(own, 0, BlockRows{each, count, first, n}, 1, threads, tile.verdicts(), tile.across(), RowsOfOthers<T>{slot, 1, blocks});
        meet_in_cluster();
        const int verdict = least_in_cluster(tile.verdicts(), blocks);
        if (verdict > n) {
            const Line<T> x = line_from(job.x, row + first);
            for (int r = thread; r < count; r += threads) x.at(r) = job.adds ? x[r] + own[3 * each + r] : own[3 * each + r];
        }
        if (rank == 0 && thread == 0) {
            if (verdict == n) left.large.add(k);
            else if (verdict < n) report_failure(job.outcome, job.status, k, verdict, Reason::not_finite);
            else if (!job.pivots) report_rescued(job.outcome);
        }
        __syncwarp();
    }
    meet_in_cluster();
#endif
}

}  // namespace trifold::cuda
