// SPDX-License-Identifier: BSD-3-Clause
// Systems of a ragged batch that runs have marked (ragged_runs.cuh), with pivots: tiny ones by a thread each, others by 4 to 128 lanes, and the longest ones by a larger block or a cluster of them (ragged.cu).
//
// Who does what: a warp looks at the marks of up to 512 systems at a time, and draws the next ones. Warps do not wait for each other. What has not room enough there is listed for blocks, two at a time where both fit.
// Words per row: 4 read, 1 written; tiny ones are read once more where rows are exchanged. Of shared memory 4 a row.
// Numerics: tiny ones in LAPACK's order of elimination (pivoted_line.cuh); others as in ragged_tile.cuh. x of what fails is not stored.
#pragma once

#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/general/ragged_runs.hpp"
#include "backends/cuda/tridiagonal/general/ragged_tile.cuh"

namespace trifold::cuda {

inline constexpr int marked_threads = 128, tiny_rows = 8;

template <class T>
struct MarkedWarp {
    using Tile = RaggedTile<T, marked_threads, marked_threads>;
    const RaggedJob<T>& job;
    T* memory;  ///< of shared memory: four arrays of `rows`
    int rows, lane;
    unsigned rescued = 0;

    __device__ void tell(std::int64_t k, const PivotedVerdict<T>& verdict) {
        if (verdict.reason == Reason::exact) ++rescued;
        else report_failure(job.outcome, job.status, k, verdict.row, verdict.reason);
    }
    __device__ void store(std::int64_t row, const T* x, int n, int from, int step, int apart) const {
        const Line<T> to = line_from(job.x, row);
        for (int i = from; i < n; i += step) to.at(i) = job.adds ? to[i] + x[i * apart] : x[i * apart];
    }

    /// By the calling thread: n ≤ tiny_rows.
    __device__ __noinline__ void solve_tiny(std::int64_t k, std::int64_t row, int n) {
        T* const scratch = memory + lane;
        const Line<T> found{scratch + 3 * n * 32, T(0), 32};
        const PivotedVerdict<T> verdict = solve_line(line_from(job.lower, row), line_from(job.diag, row), line_from(job.upper, row), line_from(job.rhs, row), found, n, scratch, 32);
        if (verdict.reason == Reason::exact) store(row, scratch + 3 * n * 32, n, 0, 1, 32);
        tell(k, verdict);
    }

    /// Lanes that share a system of n rows, at most `rows`: so few that all systems of a warp have room.
    __device__ int lanes_for(int n) const {
        int lanes = 4;
        while (n * 32 > rows * lanes) lanes *= 2;
        return lanes;
    }

    /// By all lanes, `lanes` of them a system each; those without one have n = 0.
    __device__ __noinline__ void solve(std::int64_t k, std::int64_t row, int n, int lanes) {
        const int place = lane & (lanes - 1);
        T* const own = memory + 4 * (rows * lanes / 32) * (lane / lanes);
        const Line<T>* const lines[4] = {&job.lower, &job.diag, &job.upper, &job.rhs};
        __syncwarp();
#pragma unroll
        for (int m = 0; m < 4; ++m) {
            const Line<T> from = line_from(*lines[m], row);
            for (int i = place; i < n; i += lanes)
                if ((m != 0 || i > 0) && (m != 2 || i + 1 < n)) copy_async(shared_address(own + m * n + i), from.data + i);
        }
        if (place == 0 && n > 0) own[0] = 0, own[3 * n - 1] = 0;
        await_copies();
        __syncwarp();
        const int verdict = Tile::solve_by_warp(own, n, n, lanes);
        __syncwarp();
        if (n > 0 && verdict == Tile::solved) {
            store(row, own + 3 * n, n, place, lanes, 1);
            if (place == 0) ++rescued;
        } else if (n > 0 && place == 0) {
            PivotedVerdict<T> end{Reason::not_finite, verdict};
            if (verdict == Tile::left) {
                end = solve_ragged_line(&job, row, n, own);
                if (end.reason == Reason::exact) store(row, own + 3 * n, n, 0, 1, 1);
            }
            tell(k, end);
        }
        __syncwarp();
    }

    /// Every lane's system, of n rows, at most `rows`; n = 0: none. By all lanes.
    __device__ void solve_of_lanes(std::int64_t k, std::int64_t row, int n) {
        const int lanes = n > tiny_rows ? lanes_for(n) : 0;
        for (unsigned all = __ballot_sync(~0u, lanes > 0); all;) {
            const int shared = __shfl_sync(~0u, lanes, __ffs(static_cast<int>(all)) - 1);
            unsigned alike = __ballot_sync(~0u, lanes == shared) & all;
            int from = -1;  // whose system the lane works on
            for (int group = 0; group < 32 / shared && alike; ++group) {
                const int first = __ffs(static_cast<int>(alike)) - 1;
                alike &= alike - 1, all &= ~(1u << first);
                if (lane / shared == group) from = first;
            }
            const std::int64_t its = __shfl_sync(~0u, k, from & 31), its_row = __shfl_sync(~0u, row, from & 31);
            const int its_rows = __shfl_sync(~0u, n, from & 31);
            solve(its, its_row, from >= 0 ? its_rows : 0, shared);
        }
        __syncwarp();
        if (n > 0 && n <= tiny_rows) solve_tiny(k, row, n);
        __syncwarp();
    }

    /// By all lanes, at the end.
    __device__ void report() const {
        const unsigned all = __reduce_add_sync(~0u, rescued);
        if (lane == 0 && all > 0 && !job.pivots) report_rescued(job.outcome, all);
    }
};

template <class T>
__global__ void __launch_bounds__(marked_threads, 4) ragged_marked_kernel(const __grid_constant__ RaggedJob<T> job, const __grid_constant__ RaggedLeft left) {
    extern __shared__ __align__(16) unsigned char ragged_memory[];
    after_the_kernel_before();
    if (*left.any == 0) return;
    const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) / 32, rows = job.tile_rows / (marked_threads / 32);
    MarkedWarp<T> mine{job, reinterpret_cast<T*>(ragged_memory) + 4 * warp * rows, rows, lane};
    // So many systems at a time that there are some for every warp, but no more than are looked at together.
    constexpr std::int64_t most_at_once = 512;
    const std::int64_t shares = static_cast<std::int64_t>(gridDim.x) * (marked_threads / 32) * 4, each = min((job.systems + shares - 1) / shares, most_at_once), at_once = each > 32 ? each & ~std::int64_t{31} : each;
    while (true) {
        std::int64_t first = 0;
        if (lane == 0) first = atomicAdd(left.tickets, 1u) * at_once;
        first = __shfl_sync(~0u, first, 0);
        if (first >= job.systems) break;
        unsigned marked = 0;
        for (int i = 0; 32 * i < at_once; ++i) {
            const std::int64_t k = first + 32 * i + lane;
            marked |= static_cast<unsigned>(32 * i + lane < at_once && k < job.systems && left.marks[k] == 1) << i;
        }
        while (__any_sync(~0u, marked)) {
            const std::int64_t k = first + 32 * (__ffs(static_cast<int>(marked)) - 1) + lane;
            std::int64_t row = 0;
            int n = 0;  // fewer than least_alone
            if (marked) row = job.offsets[k], n = static_cast<int>(job.offsets[k + 1] - row);
            marked &= marked - 1;
            if (n > rows) {
                const bool block_has_room = n <= job.chip_rows || n > left.most_cluster_rows;  // or none has
                (n > job.tile_rows ? block_has_room ? left.large : left.huge : n > job.tile_rows / 2 ? left.middle : left.small).add(k);
                n = 0;
            }
            mine.solve_of_lanes(k, row, n);
        }
    }
    mine.report();
}

/// Two systems of at most half a tile's rows, or one (n = 0: none), by half of a block's threads each. mine: the system of the calling thread's half.
template <class T, class Tile>
__device__ __noinline__ void solve_two(const Tile& tile, std::int64_t k, std::int64_t row, int n) {
    constexpr int lanes = marked_threads / 2;
    const RaggedJob<T>& job = tile.job;
    const int half = static_cast<int>(threadIdx.x) / lanes, place = static_cast<int>(threadIdx.x) % lanes, pitch = 4 * (tile.capacity / 2);
    T* const all = tile.array(0);
    T* const own = all + half * pitch;
    MarkedWarp<T> mine{job, own, n, place};
    __syncthreads();  // the memory is free
    const Line<T>* const lines[4] = {&job.lower, &job.diag, &job.upper, &job.rhs};
#pragma unroll
    for (int m = 0; m < 4; ++m) {
        const Line<T> from = line_from(*lines[m], row);
        for (int i = place; i < n; i += lanes)
            if ((m != 0 || i > 0) && (m != 2 || i + 1 < n)) copy_async(shared_address(own + m * n + i), from.data + i);
    }
    if (place == 0 && n > 0) own[0] = 0, own[3 * n - 1] = 0;
    if (place == 0) tile.verdicts()[half] = n + 1;
    await_copies();
    __syncthreads();
    solve_by_lanes<true>(all, pitch, BlockRows::whole(n), 2, lanes, tile.verdicts(), tile.across());
    __syncthreads();
    const int verdict = tile.verdicts()[half];
    if (n > 0 && verdict > n) {
        mine.store(row, own + 3 * n, n, place, lanes, 1);
        if (place == 0) ++mine.rescued;
    } else if (n > 0 && place == 0) {
        PivotedVerdict<T> end{Reason::not_finite, verdict};
        if (verdict == n) {
            end = solve_ragged_line(&job, row, n, own);
            if (end.reason == Reason::exact) mine.store(row, own + 3 * n, n, 0, 1, 1);
        }
        mine.tell(k, end);
    }
    if (mine.rescued > 0 && !job.pivots) report_rescued(job.outcome, mine.rescued);
}

/// Of two lists, by blocks: systems of at most half a tile's rows, and those of at most a tile's.
template <class T>
__global__ void __launch_bounds__(marked_threads, 4) ragged_listed_kernel(const __grid_constant__ RaggedJob<T> job, const __grid_constant__ RaggedLeft left) {
    extern __shared__ __align__(16) unsigned char ragged_memory[];
    after_the_kernel_before();
    const RaggedTile<T, marked_threads, 8 * marked_threads> tile{job, job.tile_rows, ragged_memory};
    const auto rows_of = [&](std::int64_t k) { return static_cast<int>(job.offsets[k + 1] - job.offsets[k]); };
    for (unsigned i = blockIdx.x; i < *left.middle.count; i += gridDim.x) {
        const std::int64_t k = left.middle.systems[i];
        tile.solve_one(k, job.offsets[k], rows_of(k));
    }
    const unsigned count = *left.small.count, half = threadIdx.x / (marked_threads / 2);
    for (unsigned i = 2 * blockIdx.x; i < count; i += 2 * gridDim.x) {
        const std::int64_t k = i + half < count ? left.small.systems[i + half] : 0;
        solve_two<T>(tile, k, job.offsets[k], i + half < count ? rows_of(k) : 0);
    }
}

}  // namespace trifold::cuda
