// SPDX-License-Identifier: BSD-3-Clause
// Between the two pivoted passes: long chunks are merged in groups of 16, level by level (couple.cuh), one thread each, until one thread
// solves what is left; the way back finds the ends of long chunks and then of chunks. Shapes: two_pass.cu. Some 1.2 words per row.
#pragma once

#include "backends/cuda/tridiagonal/device/two_pass_job.cuh"

namespace trifold::cuda::two_pass {

inline constexpr int level_threads = 64, top_threads = 512;

/// Group `g` of a level becomes one chunk of the next.
template <class T>
__device__ void merge_group(const Job<T>& job, std::int64_t k, int level, std::int64_t g) {
    const std::int64_t count = job.cut.count[level], size = job.cut.together;
    double* const work = job.work_of(k);
    TwoRows two;
    if (!merge(work + job.cut.rows_at[level], count, g * size, min((g + 1) * size, count) - 1, two)) job.found[k].irregular = 1;
    store_rows(work + job.cut.rows_at[level + 1], job.cut.count[level + 1], g, two);
}

/// The ends of group `g` of a level from those of the next.
template <class T>
__device__ void spread_group(const Job<T>& job, std::int64_t k, int level, std::int64_t g) {
    const std::int64_t count = job.cut.count[level], groups = job.cut.count[level + 1], size = level == 0 ? job.cut.long_chunk : job.cut.together;
    double* const work = job.work_of(k);
    const double* const ends = work + job.cut.ends_at[level + 1];
    const double known[4] = {g > 0 ? ends[groups + g - 1] : 0, ends[g], ends[groups + g], g + 1 < groups ? ends[g + 1] : 0};
    spread(work + job.cut.rows_at[level], count, g * size, min((g + 1) * size, count) - 1, known, work + job.cut.ends_at[level]);
}

template <class T>
__global__ void __launch_bounds__(level_threads) merge_kernel(const __grid_constant__ Job<T> job, int level) {
    after_the_kernel_before();
    const std::int64_t k = job.system(), g = static_cast<std::int64_t>(blockIdx.x) * level_threads + threadIdx.x;
    if (!job.idle(k) && g < job.cut.count[level + 1]) merge_group(job, k, level, g);
}

template <class T>
__global__ void __launch_bounds__(level_threads) spread_kernel(const __grid_constant__ Job<T> job, int level) {
    after_the_kernel_before();
    const std::int64_t k = job.system(), g = static_cast<std::int64_t>(blockIdx.x) * level_threads + threadIdx.x;
    if (!job.idle(k) && g < job.cut.count[level + 1]) spread_group(job, k, level, g);
}

/// The last level, by one thread.
template <class T>
__device__ void solve_top(const Job<T>& job, std::int64_t k) {
    const int last = job.cut.levels - 1;
    const std::int64_t count = job.cut.count[last];
    double* const work = job.work_of(k);
    TwoRows two;
    double known[4] = {0, 0, 0, 0};
    const bool regular = merge(work + job.cut.rows_at[last], count, 0, count - 1, two);
    if (!solve_last(two, known[1], known[2]) || !regular) job.found[k].irregular = 1;
    spread(work + job.cut.rows_at[last], count, 0, count - 1, known, work + job.cut.ends_at[last]);
}

/// All levels from `lowest` on, whose groups are few, up and down again, by one team.
template <class T, class Team = WholeBlock>
__device__ void solve_levels(const Job<T>& job, std::int64_t k, int lowest) {
    const int last = job.cut.levels - 1;
    for (int level = lowest; level < last; ++level) {
        for (std::int64_t g = Team::thread(); g < job.cut.count[level + 1]; g += Team::threads()) merge_group(job, k, level, g);
        Team::sync();
    }
    if (Team::thread() == 0) solve_top(job, k);
    Team::sync();
    for (int level = last - 1; level >= lowest; --level) {
        for (std::int64_t g = Team::thread(); g < job.cut.count[level + 1]; g += Team::threads()) spread_group(job, k, level, g);
        Team::sync();
    }
}

/// One block per system.
template <class T>
__global__ void __launch_bounds__(top_threads) top_kernel(const __grid_constant__ Job<T> job, int lowest) {
    after_the_kernel_before();
    if (!job.idle(job.system())) solve_levels(job, job.system(), lowest);
}

}  // namespace trifold::cuda::two_pass
