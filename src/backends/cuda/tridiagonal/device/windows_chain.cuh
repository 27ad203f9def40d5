// SPDX-License-Identifier: BSD-3-Clause
// The chain of all windows, after a pass that only reduced: one unknown per window, solved by the whole device.
//
//   x[w] = d - a x[w-1] - c x[w+1],   w = 0 … windows-1, windows of all systems one after the other (a, c are 0 between
//   systems)
//
// A lane takes `each` windows, a warp joins its lanes (lanes.cuh), and every block solves for all warps, 32 of them joined by a warp, the rest by one. One
// wait for all blocks. Where a lane has several windows they go through global memory, three words each.
#pragma once

#include "backends/cuda/tridiagonal/device/windows_couple.cuh"

namespace trifold::cuda::windows {

/// Blocks wait for each other: the launch is cooperative. By all threads.
template <class T>
__device__ __forceinline__ void meet(const Job<T>& job, unsigned& meetings) {
    ++meetings;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(&job.outcome->arrived, 1u);
        while (seen(&job.outcome->arrived) < meetings * gridDim.x) {
        }
        __threadfence();
    }
    __syncthreads();
}

/// Rows first … first + count - 1 of a chain in memory become relations to the unknown before them and their last one.
template <class T>
struct Segment {
    T* at;  ///< word m of row i at at[m · pitch + i]
    std::int64_t pitch;

    __device__ void eliminate(int i, const Relation<T>& row, Relation<T>& running) const {
        if (i == 0) {
            running = row;
        } else {
            const T k = finite_or_zero(reciprocal(fused(-row.a, running.c, T(1))));
            running = {-(row.a * k) * running.a, row.c * k, fused(-row.a, running.d, row.d) * k};
        }
        at[i] = running.a, at[pitch + i] = running.c, at[2 * pitch + i] = running.d;
    }

    /// What is left of `count` rows; `last`: the last one, as eliminate left it.
    __device__ Interface<T> reduce(int count, const Relation<T>& last) const {
        if (count <= 1) return {{T(0), T(-1), T(0)}, last};
        Relation<T> after{at[count - 2], at[pitch + count - 2], at[2 * pitch + count - 2]};
        for (int i = count - 3; i >= 0; --i) {
            after = through(Relation<T>{at[i], at[pitch + i], at[2 * pitch + i]}, after);
            at[i] = after.a, at[pitch + i] = after.c, at[2 * pitch + i] = after.d;
        }
        return {after, last};
    }

    __device__ T x(int i, int count, T before, T end) const {
        return i + 1 == count ? end : fused(-at[pitch + i], end, fused(-at[i], before, at[2 * pitch + i]));
    }
};

/// All threads. `memory`: of the block, `room` words. Into job.ends comes the last unknown of every window; who needs it waits for it.
template <class T>
__device__ void solve_chain(const Job<T>& job, T* memory, int room, unsigned& meetings) {
    const int warps_here = static_cast<int>(blockDim.x) / lanes, lane = static_cast<int>(threadIdx.x) % lanes,
              warp = static_cast<int>(threadIdx.x) / lanes;
    const int warps = warps_here * static_cast<int>(gridDim.x),
              group = warp * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x);
    const int each = (job.windows + warps * lanes - 1) / (warps * lanes),
              groups = (job.windows + each * lanes - 1) / (each * lanes);
    const int first = (group * lanes + lane) * each,
              count = group < groups ? max(min(each, job.windows - first), 0) : 0;
    T* const mine = memory + warp * WarpRows<T>::words;
    const WarpRows<T> joined(mine);
    const Segment<T> segment{job.chain + first, job.windows};
    const Interface<T> nothing{{T(0), T(-1), T(0)}, {T(0), T(0), T(0)}};
    Interface<T> lane_rows = nothing;
    if (count > 0) {
        Relation<T> running;
        for (int i = 0; i < count; ++i) {
            const Interface<T> own = load_interface(job.interfaces + first + i);
            Relation<T> row = own.last;
            if (first + i + 1 < job.windows) row = close(row, load_interface(job.interfaces + first + i + 1).first);
            segment.eliminate(i, row, running);
        }
        lane_rows = segment.reduce(count, running);
    }
    Interface<T> whole;
    whole.last = joined.template reduce<true>(lane_rows.first, lane_rows.last, lane, whole.first);
    if (lane == 0 && group < groups) job.groups[group] = whole;
    meet(job, meetings);

    // The groups, by every block for itself: a warp joins 32 of them, one warp what is left.
    const int joints = (groups + lanes - 1) / lanes;
    T* const of_joints = memory + warps_here * WarpRows<T>::words;
    auto* const joint = reinterpret_cast<Interface<T>*>(of_joints + joints * WarpRows<T>::words);
    T* const solution = reinterpret_cast<T*>(joint + joints);
    if (joints > 2 * lanes || (warps_here + joints) * WarpRows<T>::words + 7 * joints > room) return;  // never: the host launches no such grid
    const auto group_of = [&](int j) { return j < joints && j * lanes + lane < groups ? load_interface(job.groups + j * lanes + lane) : nothing; };
    Interface<T> ahead = group_of(warp);
    for (int j = warp; j < joints; j += warps_here) {
        const Interface<T> here = ahead;
        ahead = group_of(j + warps_here);
        whole.last = WarpRows<T>(of_joints + j * WarpRows<T>::words).template reduce<true>(here.first, here.last, lane, whole.first);
        if (lane == 0) joint[j] = whole;
    }
    __syncthreads();
    if (warp == 0) {
        Interface<T> pair[2];
        T last[2], unused[2], left;
        for (int i = 0; i < 2; ++i) pair[i] = 2 * lane + i < joints ? joint[2 * lane + i] : Interface<T>{};
        solve_few<T, 2>(pair, lane, last, unused, left);
        for (int i = 0; i < 2; ++i)
            if (2 * lane + i < joints) solution[2 * lane + i] = last[i];
    }
    __syncthreads();
    if (group < groups) {
        const int j = group / lanes;
        T left;
        const T of_group = WarpRows<T>(of_joints + j * WarpRows<T>::words).substitute(j > 0 ? solution[j - 1] : T(0), solution[j], lane, left);
        const T before = __shfl_sync(~0u, left, group % lanes), last = __shfl_sync(~0u, of_group, group % lanes);
        const T end = joined.substitute(before, last, lane, left);
        for (int i = 0; i < count; ++i) {
            const T x = segment.x(i, count, left, end);
            const_cast<volatile T&>(job.ends[first + i]) = is_nothing(x) ? T(0) : x;  // 0: nor will that pass its check
        }
    }
}

}  // namespace trifold::cuda::windows
