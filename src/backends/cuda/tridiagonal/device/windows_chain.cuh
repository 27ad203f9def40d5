// SPDX-License-Identifier: BSD-3-Clause
// The chain of all windows, after a pass that only reduced: one unknown per window, solved by the whole device.
//
//   x[w] = d - a x[w-1] - c x[w+1],   w = 0 … windows-1, windows of all systems one after the other (a, c are 0 between
//   systems)
//
// A lane takes `each` windows, a warp joins its lanes (lanes.cuh), and every block solves for all warps, by one of its
// own. Two waits for all blocks. Where a lane has several windows they go through global memory, three words each.
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

/// All threads. `memory`: of the block, `room` words. Afterwards job.ends holds the last unknown of every window.
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
    Interface<T> lane_rows{{T(0), T(-1), T(0)}, {T(0), T(0), T(0)}};
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

    // The groups, one warp for its block.
    T* const rows = memory + warps_here * WarpRows<T>::words;
    T* const solution = rows + 3 * groups;
    if (4 * groups + warps_here * WarpRows<T>::words > room) return;  // never: the host launches no such grid
    for (int g = static_cast<int>(threadIdx.x); g < groups; g += static_cast<int>(blockDim.x)) {
        Relation<T> row = load_interface(job.groups + g).last;
        if (g + 1 < groups) row = close(row, load_interface(job.groups + g + 1).first);
        rows[g] = row.a, rows[groups + g] = row.c, rows[2 * groups + g] = row.d;
    }
    T* const top_memory = solution + groups;
    __syncthreads();
    if (warp == 0) {
        const int share = (groups + lanes - 1) / lanes, from = min(lane * share, groups),
                  own = min(share, groups - from);
        const Segment<T> part{rows + from, groups};
        Interface<T> of_part{{T(0), T(-1), T(0)}, {T(0), T(0), T(0)}};
        Relation<T> running;
        for (int i = 0; i < own; ++i)
            part.eliminate(i, {part.at[i], part.at[part.pitch + i], part.at[2 * part.pitch + i]}, running);
        if (own > 0) of_part = part.reduce(own, running);
        const WarpRows<T> top(top_memory);
        T left;
        const T end = top.template solve<false>(of_part.first, of_part.last, lane, left);
        for (int i = 0; i < own; ++i) solution[from + i] = part.x(i, own, left, end);
    }
    __syncthreads();
    if (group < groups) {
        T left;
        const T end = joined.substitute(group > 0 ? solution[group - 1] : T(0), solution[group], lane, left);
        for (int i = 0; i < count; ++i) job.ends[first + i] = segment.x(i, count, left, end);
    }
    meet(job, meetings);
}

}  // namespace trifold::cuda::windows
