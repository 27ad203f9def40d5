// SPDX-License-Identifier: BSD-3-Clause
// One system in one cluster of blocks:   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i],   i = 0 … rows-1
//
// Shapes: a, b, c, d, x are vectors whose rows lie side by side; x may be d. a[0] and c[rows-1] are not read. Overwritten: x.
// Who does what: a lane has R rows, in registers from the first to the last; a warp makes one Interface of its 32 R
//   (device/windows_lane.cuh) and sends it to all blocks (st.async); every warp solves the system of all warps' last unknowns for itself,
//   by the same operations, then its own rows. No other launch: the first thread resets the outcome, and where a residual is too large, it solves
//   by pivots.
// Words per row: 4 read, 1 written. Roof: latency. A launch that does nothing takes 5 us between events on an H200, and reading and
//   writing the rows hardly more if many blocks do it; one block takes 1.1 us to bring 4096 rows of doubles in at 64 bytes per cycle. What is
//   left is the chain: R + 1 eliminations in a lane, 5 in the warp, a message, 1 + 5 among warps (1 where they do not matter to
//   each other), and substitution back.
// Numerics: as windows: of every row |rhs - A x| ≤ accept (|a|+|b|+|c|) X, X the largest |x| of its warp and of the last rows of the others.
//   x is stored before that is known; in place, rhs is stored again where it does not hold.
#pragma once

#include <cstring>

#include "backends/cuda/tridiagonal/block/copy_engine.cuh"
#include "backends/cuda/tridiagonal/device/windows_couple.cuh"
#include "backends/cuda/tridiagonal/pivoted_line.cuh"

namespace trifold::cuda::one_system {

inline constexpr int lanes = 32, most_blocks = 16, most_warps = 4;

/// As little as can be: what a launch carries costs time.
template <class T>
struct Job {
    T* input[4];          ///< lower, diag, upper, rhs
    T* x;
    int rows;
    unsigned whole;       ///< bit k: input k begins at a multiple of 16 bytes; bit 4: x
    T accept, negligible;
    bool in_place;
    int branch;           ///< of the outcome
    DeviceOutcome* outcome;
    std::int64_t number;  ///< of the system
    std::int8_t* status;
    T* scratch;           ///< four words per row
};

/// Warps of the cluster per lane of the warp that joins them.
template <class T, int Each>
struct Memory {
    windows::Interface<T> parts[lanes * Each];
    unsigned long long arrived;
    int bad;
};

/// R rows of one lane, those in [low, high); else `missing`.
template <class T, int R>
__device__ __forceinline__ void load_rows(const T* from, bool whole, int first, int low, int high, T missing, T (&to)[R]) {
    constexpr int vector = 16 / static_cast<int>(sizeof(T));
    if (R % vector == 0 && whole && first >= low && first + R <= high) {
#pragma unroll
        for (int i = 0; i < R; i += vector) {
            const int4 four = *reinterpret_cast<const int4*>(from + first + i);
            memcpy(&to[i], &four, 16);
        }
    } else {
#pragma unroll
        for (int i = 0; i < R; ++i) to[i] = first + i >= low && first + i < high ? from[first + i] : missing;
    }
}

template <class T, int R>
__device__ __forceinline__ void store_rows(T* to, bool whole, int first, int rows, const T (&from)[R]) {
    constexpr int vector = 16 / static_cast<int>(sizeof(T));
    if (R % vector == 0 && whole && first + R <= rows) {
#pragma unroll
        for (int i = 0; i < R; i += vector) {
            int4 four;
            memcpy(&four, &from[i], 16);
            *reinterpret_cast<int4*>(to + first + i) = four;
        }
    } else {
#pragma unroll
        for (int i = 0; i < R; ++i)
            if (first + i < rows) to[first + i] = from[i];
    }
}

/// Nothing that this thread has stored need be seen by others: it does not wait for what it has asked for.
__device__ __forceinline__ void arrive_relaxed() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
__device__ __forceinline__ void arrive_in_cluster() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
__device__ __forceinline__ void wait_for_cluster() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

/// The last unknowns of all warps, Each per lane, and their first ones; left: the unknown before the lane's.
template <class T, int Each>
__device__ __forceinline__ void solve_warps(const windows::Interface<T> (&mine)[Each], T negligible, int lane, T (&last)[Each], T (&first)[Each], T& left) {
    const Relation<T> next = from_below(mine[0].first, 1, lanes);
    Largest<T> coupling;
#pragma unroll
    for (int i = 0; i < Each; ++i) {
        Relation<T> own = mine[i].last;
        if (i + 1 < Each || lane < lanes - 1) own = windows::close_with(own, i + 1 < Each ? mine[i + 1 < Each ? i + 1 : 0].first : next);
        last[i] = own.d, coupling.add(own.a), coupling.add(own.c);
    }
    if (!__all_sync(~0u, coupling.value() <= negligible)) return windows::solve_few<T, Each>(mine, lane, last, first, left);
    const T above = __shfl_up_sync(~0u, last[Each - 1], 1);
    left = lane ? above : T(0);
#pragma unroll
    for (int i = 0; i < Each; ++i)
        first[i] = fused(-mine[i].first.c, last[i], fused(-mine[i].first.a, i ? last[i ? i - 1 : 0] : left, mine[i].first.d));
}

template <class T, int Each>
__device__ __forceinline__ T of_warp(const T (&values)[Each], int warp) {
    T value = __shfl_sync(~0u, values[0], warp / Each);
#pragma unroll
    for (int i = 1; i < Each; ++i) {
        const T other = __shfl_sync(~0u, values[i], warp / Each);
        if (warp % Each == i) value = other;
    }
    return value;
}

/// The grid is one cluster.
template <class T, int R, int Each>
__global__ void __launch_bounds__(lanes* most_warps, 1) one_system_kernel(const __grid_constant__ Job<T> job) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    __shared__ __align__(16) Memory<T, Each> shared;
    const int lane = static_cast<int>(threadIdx.x) % lanes, warp = static_cast<int>(threadIdx.x) / lanes, warps = static_cast<int>(blockDim.x) / lanes,
              blocks = static_cast<int>(gridDim.x), number = static_cast<int>(blockIdx.x) * warps + warp, rows = job.rows, first = (number * lanes + lane) * R;
    const Arrival arrival{shared_address(&shared.arrived)};
    if (threadIdx.x == 0) {
        arrival.prepare(1), arrival.expect(static_cast<unsigned>(blocks * warps * static_cast<int>(sizeof(windows::Interface<T>))));
        shared.bad = 0;
    }
    if (warp == 0) arrive_in_cluster();
    else arrive_relaxed();
    T a[R], b[R], c[R], d[R];
    load_rows<T, R>(job.input[1], job.whole & 2, first, 0, rows, T(1), b);
    load_rows<T, R>(job.input[0], job.whole & 1, first, 1, rows, T(0), a);
    load_rows<T, R>(job.input[2], job.whole & 4, first, 0, rows - 1, T(0), c);
    load_rows<T, R>(job.input[3], job.whole & 8, first, 0, rows, T(0), d);
    windows::Lane<T, R> state;
    windows::Whole<T> part;
    part.negligible = job.negligible;
    bool sums = false;
    state.reduce(a, b, c, d, lane, part, sums, true);
    wait_for_cluster();
    if (lane < blocks) {
        const unsigned to = in_block(shared_address(&shared.parts[number]), lane), news = in_block(arrival.barrier, lane);
        constexpr unsigned pair = 2 * sizeof(T);
        send(to, part.first.a, part.first.c, news), send(to + pair, part.first.d, part.last.a, news), send(to + 2 * pair, part.last.c, part.last.d, news);
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *job.outcome = fresh_outcome(rows, 1, job.branch);
        if (job.status) job.status[job.number] = static_cast<std::int8_t>(Reason::exact);
    }
    arrival.wait_cluster(0);
    __syncwarp();
    windows::Interface<T> mine[Each];
    T last[Each], head[Each], beside;
#pragma unroll
    for (int i = 0; i < Each; ++i) {
        mine[i] = windows::Interface<T>{};
        if (lane * Each + i < blocks * warps) mine[i] = shared.parts[lane * Each + i];
    }
    solve_warps<T, Each>(mine, job.negligible, lane, last, head, beside);
    const T before = number ? of_warp<T, Each>(last, max(number - 1, 0)) : T(0), end = of_warp<T, Each>(last, number);
    const T own_head = of_warp<T, Each>(head, number), beyond = of_warp<T, Each>(head, min(number + 1, lanes * Each - 1));

    T x[R], left, stored[R];
    state.solve(a, c, d, before, end, lane, x, left, part.apart);
    if (lane == 0) x[0] = own_head;  // the very number that the warp before takes it for
    store_rows<T, R>(job.x, job.whole & 16, first, rows, x);
    Largest<T> largest;
#pragma unroll
    for (int i = 0; i < Each; ++i) largest.add(last[i]);
#pragma unroll
    for (int i = 0; i < R; ++i) largest.add(x[i]), stored[i] = d[i];
    const T X = windows::number_of<T>(__reduce_max_sync(~0u, windows::held_bits(largest))) * windows::beyond_cut<T>;
    T after = __shfl_down_sync(~0u, x[0], 1);
    if (lane == lanes - 1) after = number + 1 < blocks * warps ? beyond : T(0);
    const bool good = __all_sync(~0u, state.check(a, b, c, stored, x, left, X, job.accept, [&] { return after; }));
    if (!good && lane < blocks) store_in_block(in_block(shared_address(&shared.bad), lane), 1);
    __syncwarp();
    if (good) arrive_relaxed();
    else arrive_in_cluster();
    wait_for_cluster();
    if (!shared.bad) return;
    if (job.in_place) store_rows<T, R>(job.x, job.whole & 16, first, rows, d);
    __threadfence();
    __syncwarp();
    arrive_in_cluster();
    wait_for_cluster();
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        const auto line = [](T* data) { return Line<T>{data, T(0), 1}; };
        const PivotedVerdict<T> verdict = solve_line(line(job.input[0]), line(job.input[1]), line(job.input[2]), line(job.input[3]), line(job.x), rows, job.scratch, 1);
        if (verdict.reason == Reason::exact) report_rescued(job.outcome);
        else report_failure(job.outcome, job.status, job.number, verdict.row, verdict.reason);
    }
#endif
}

/// A grid that is one cluster. `cluster` has to stay.
inline cudaLaunchConfig_t configuration(int blocks, int warps, cudaStream_t stream, cudaLaunchAttribute& cluster) {
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = static_cast<unsigned>(blocks), cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>(blocks)), config.blockDim = dim3(static_cast<unsigned>(lanes * warps));
    config.stream = stream;
    config.attrs = &cluster, config.numAttrs = 1;
    return config;
}

}  // namespace trifold::cuda::one_system
