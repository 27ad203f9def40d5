// SPDX-License-Identifier: BSD-3-Clause
// Both pivoted passes, the correction and LU in one launch, for what is left of systems that other kernels have tried: in a cluster, or by the blocks of window_kernel.
#pragma once

#include <cooperative_groups.h>

#include <algorithm>

#include "backends/cuda/tridiagonal/device/two_pass_check.cuh"
#include "backends/cuda/tridiagonal/device/two_pass_finish.cuh"
#include "backends/cuda/tridiagonal/device/two_pass_levels.cuh"
#include "backends/cuda/tridiagonal/device/two_pass_reduce.cuh"
#include "backends/cuda/tridiagonal/device/two_pass_spread.cuh"
#include "backends/cuda/tridiagonal/pivoted_block.cuh"
#include "backends/cuda/tridiagonal/pivoted_line.cuh"

namespace trifold::cuda::two_pass {

/// All passes over the systems that are to be solved, in one launch that ends at once where there is none: kernels one by one would cost what comes
/// before more than they are worth. `to_correct` marks what is to be done in both turns.
template <class T, bool again, class Team, class Meet>
__device__ __forceinline__ void passes_of(const Job<T>& job, unsigned char* shared, const Meet& meet) {
    const Cut& cut = job.cut;
    const std::int64_t thread = Team::number() * block_threads + Team::thread(), threads = Team::count() * block_threads;
    const int own_warp = Team::warp(), last = cut.levels - 1;
    const std::int64_t warp = own_warp * Team::count() + Team::number();
    // call(system, item), items 0 … each-1 of every system shared out.
    const auto share = [&](std::int64_t each, std::int64_t from, std::int64_t step, auto call) {
        for (std::int64_t i = from; i < each * job.levels.systems; i += step) {
            const std::int64_t k = i / each;
            if (job.marks[k] == to_correct) call(k, i - k * each);
        }
    };
    constexpr int warps = block_threads / lanes;
    if constexpr (again) {
        share(cut.tiles(lanes), warp, warps * Team::count(), [&](std::int64_t k, std::int64_t tile) { leave_residue(job, k, tile); });
        meet();
    }
    share(reduce_items<T>(cut), warp, warps * Team::count(), [&](std::int64_t k, std::int64_t item) { reduce_item<T, again>(job, k, item, shared + own_warp * reduce_bytes<T>); });
    int top = first_level<T>;  // from here on a block waits for nobody but itself
    while (top < last && cut.count[top + 1] > 2 * block_threads) ++top;
    for (int level = first_level<T>; level < top; ++level) {
        meet();
        share(cut.count[level + 1], thread, threads, [&](std::int64_t k, std::int64_t g) { merge_group(job, k, level, g); });
    }
    meet();
    share(1, Team::number(), Team::count(), [&](std::int64_t k, std::int64_t) { solve_levels<T, Team>(job, k, top); });
    for (int level = top - 1; level >= 0; --level) {
        meet();
        share(cut.count[level + 1], thread, threads, [&](std::int64_t k, std::int64_t g) { spread_group(job, k, level, g); });
    }
    meet();
    share(cut.tiles(Tiled<T>::of_all), warp, warps * Team::count(), [&](std::int64_t k, std::int64_t number) {
        if (!job.found[k].irregular) finish_tile<T, again>(job, Rows<T>(job, k, again), k, number, reinterpret_cast<T*>(shared + own_warp * Tiled<T>::bytes));
    });
    meet();
    if constexpr (again) {
        for (std::int64_t k = 0; k < job.levels.systems; ++k)
            if (job.marks[k] == to_correct) residuals_of(job, k, warp, warps * Team::count());
        meet();
    }
    share(1, thread, threads, [&](std::int64_t k, std::int64_t) { judge(job, k, again); });
    meet();
}

/// Of what is left to LU, systems that are not finite, by all threads.
template <class T, class Team, class Meet>
__device__ __forceinline__ void name_not_finite(const Job<T>& job, std::int8_t* status, const Meet& meet) {
    const std::int64_t each = job.cut.tiles(lanes), warps = block_threads / lanes * Team::count();
    for (std::int64_t i = Team::warp() * Team::count() + Team::number(); i < each * job.levels.systems; i += warps)
        if (job.marks[i / each] == to_pivot) look_for_not_finite(job, i / each, i % each);
    meet();
    for (std::int64_t k = Team::number() * block_threads + Team::thread(); k < job.levels.systems; k += Team::count() * block_threads) report_not_finite(job, status, k);
    meet();
}

/// What is left of one system, by LU, by one block.
template <class T>
__device__ __forceinline__ void solve_by_block(const PivotedJob<T>& rest, BlockPivoting<T>& shared) {
    const PivotedVerdict<T> verdict = solve_system_by_block(&rest, 0, &shared);
    if (threadIdx.x != 0) return;
    if (verdict.reason == Reason::exact) return report_rescued(rest.outcome);
    std::int64_t index[4];
    rest.levels.indices(0, index);
    report_failure(rest.outcome, rest.status, rest.levels.number_of(index), verdict.row, verdict.reason);
}

/// By all threads of a launch whose teams are all there, which have met since prepare_spread: meet() waits for all of them. shared: the team's. Whether anything may be left to LU.
template <class T, class Team, class Meet>
__device__ __forceinline__ bool solve_what_was_left(const Job<T>& job, std::int8_t* status, unsigned char* shared, const Meet& meet) {
    if (job.spread.segments > 0) {
        if (!job.was_left(0)) return false;
        if (solve_spread<T, Team>(job, shared, meet)) {
            if (job.kept_x) copy_of(job, 0);
            return false;
        }
    }
    const std::int64_t thread = Team::number() * block_threads + Team::thread(), threads = Team::count() * block_threads;
    for (std::int64_t k = thread; k < job.levels.systems; k += threads) {
        job.marks[k] = job.was_left(k) ? to_correct : accepted;
        job.found[k] = {};
    }
    meet();
    // Whether any of few systems is still to be solved, by all threads alike; many are not looked at.
    const auto some_left = [&] {
        constexpr int few = 8;
        bool any = job.levels.systems > few;
        for (int k = 0; k < few && k < job.levels.systems; ++k) any |= *const_cast<volatile unsigned char*>(job.marks + k) != accepted;
        return any;
    };
    passes_of<T, false, Team>(job, shared, meet);
    const bool again = some_left();
    if (again) passes_of<T, true, Team>(job, shared, meet);
    if (job.kept_x) {
        for (std::int64_t k = 0; k < job.levels.systems; ++k)
            if (job.was_left(k) && job.marks[k] == accepted) copy_of(job, k);
        if (again) meet();  // LU takes its memory
    }
    if (again) name_not_finite<T, Team>(job, status, meet);  // behind the copies: what has no mark was accepted there
    return again;
}

/// Of a team, for the rows of its warps.
template <class T>
inline constexpr int chain_bytes = block_threads / lanes * std::max(reduce_bytes<T>, Tiled<T>::bytes);

/// One cluster: its blocks wait for each other in a quarter of the time that all blocks of the device take.
template <class T>
__global__ void __launch_bounds__(block_threads, 3) chain_kernel(const __grid_constant__ Job<T> job, const __grid_constant__ PivotedJob<T> rest) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    extern __shared__ double shared[];
    after_the_kernel_before();
    if (job.unwanted()) return;
    prepare_spread<WholeBlock>(job);
    cooperative_groups::this_cluster().sync();
    const bool again = solve_what_was_left<T, WholeBlock>(job, rest.status, reinterpret_cast<unsigned char*>(shared), [] { cooperative_groups::this_cluster().sync(); });
    if (again && blockIdx.x == 0 && job.marks[0] != accepted) solve_by_block(rest, *reinterpret_cast<BlockPivoting<T>*>(shared));
#endif
}

/// All of the above for what the blocks of another kernel have left to pivots, when they have met.
template <class T>
struct Left {
    Job<T> job;
    PivotedJob<T> rest;
};

/// By all threads of blocks of three teams. A part of their kernel: as a function that is called it would cost registers there.
template <class T>
__device__ __forceinline__ void solve_left(const Left<T>* left) {
    static_assert(chain_bytes<T> <= ThirdOfBlock::tile_bytes && ThirdOfBlock::tile_bytes % 16 == 0);
    const auto meet = [] { cooperative_groups::this_grid().sync(); };
    if (!solve_what_was_left<T, ThirdOfBlock>(left->job, left->rest.status, ThirdOfBlock::memory(), meet)) return;
    const std::int64_t thread = ThirdOfBlock::number() * block_threads + ThirdOfBlock::thread();
    if (thread < left->rest.slots) solve_lines(left->rest, thread);
}

}  // namespace trifold::cuda::two_pass

namespace trifold::cuda {

/// states: per system, 2 where it is left; blocks: of the kernel that calls solve_left. The launch's scratch is that of solve_two_pass.
template <class T>
two_pass::Left<T> left_to_pivots_of(const tridiagonal::System& system, const BatchLaunch& launch, const unsigned* states, int blocks);

}  // namespace trifold::cuda
