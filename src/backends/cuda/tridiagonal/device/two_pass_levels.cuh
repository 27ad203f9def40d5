// SPDX-License-Identifier: BSD-3-Clause
// Between the two pivoted passes: chunks, or long chunks, are merged in groups of 4 to 16, level by level (couple.cuh), one thread each, until one thread
// solves what is left; the way back finds the ends of long chunks and then of chunks. Shapes: two_pass.cu. Some 1.2 words per row, of neighbours in memory by neighbours.
#pragma once

#include "backends/cuda/tridiagonal/device/two_pass_job.cuh"

namespace trifold::cuda::two_pass {

inline constexpr int level_threads = 64, top_threads = 512;

/// Group `g` of a level becomes one chunk of the next.
template <class T>
__device__ void merge_group(const Job<T>& job, std::int64_t k, int level, std::int64_t g) {
    TwoRows two;
    if (!merge(job.rows_of(k, level), job.cut.level(level), g, two)) job.found[k].irregular = 1;
    const LevelOf next = job.cut.level(level + 1);
    store_rows(job.rows_of(k, level + 1), next.pitch(), next.place(g), two);
}

/// The ends of group `g` of a level from those of the next.
template <class T>
__device__ void spread_group(const Job<T>& job, std::int64_t k, int level, std::int64_t g) {
    const LevelOf own = job.cut.level(level);
    const double* const ends = job.ends_of(k, level + 1);
    const double known[4] = {g > 0 ? ends[own.groups + g - 1] : 0, ends[g], ends[own.groups + g], g + 1 < own.groups ? ends[g + 1] : 0};
    double* const firsts = job.ends_of(k, level) + own.first(g);
    spread(job.rows_of(k, level), own, g, known, firsts, firsts + own.count);
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
    const LevelOf level = job.cut.level(last);
    TwoRows two;
    double known[4] = {0, 0, 0, 0};
    const bool regular = merge(job.rows_of(k, last), level, 0, two);
    if (!solve_last(two, known[1], known[2]) || !regular) job.found[k].irregular = 1;
    spread(job.rows_of(k, last), level, 0, known, job.ends_of(k, last), job.ends_of(k, last) + level.count);
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
