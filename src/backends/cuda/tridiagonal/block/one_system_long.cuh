// SPDX-License-Identifier: BSD-3-Clause
// One longer system in one cluster of blocks, without halos, its rows in shared memory:   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i],   i = 0 … rows-1
//
// Shapes, overwritten, numerics: as in one_system.cuh. x leaves when all have said that it is good.
// Who does what: a block has eight warps; each brings its 32 R rows into shared memory by itself, a lane reduces R of them from there (device/windows_lane.cuh). Warps tell each other their Interface, and
//   every warp solves the system of all of them, as in one_system.cuh. What fails is shared by all blocks by pivots.
// Words per row: 4 read, 1 written. Roof: latency, and what a cluster's multiprocessors bring in: 200 KB each take 1.7 us at 64 bytes per cycle.
#pragma once

#include "backends/cuda/tridiagonal/block/one_system.cuh"

namespace trifold::cuda::one_system {

/// Warps of a block; of a cluster of 16 blocks four per lane of the one that joins them.
inline constexpr int warps_long = 8;

/// R: rows of a lane; odd ones meet in no bank.
template <class T, int R>
struct LongMemory {
    static constexpr int each = warps_long * most_blocks / lanes, rows = warps_long * lanes * R;
    Memory<T, each> shared;
    __align__(16) T raw[4][rows];  ///< lower, diag, upper, rhs; x in the place of rhs

    static constexpr std::size_t bytes(int rows_of_block) {
        const std::size_t pivoted = Memory<T, each>::bytes(rows_of_block);
        return pivoted > sizeof(LongMemory) ? pivoted : sizeof(LongMemory);
    }
};

/// A warp's rows, `first` and those after it; missing ones solve to nothing. Neither a[0] nor c[rows-1] is read.
template <class T, int R>
__device__ __forceinline__ void bring_rows(const Job<T>& job, int first, int lane, T* const (&to)[4]) {
    constexpr int vector = 16 / static_cast<int>(sizeof(T)), count = lanes * R;
    static_assert(count % vector == 0);
    const int rows = job.rows;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        const T* const from = job.input[k];
        const int low = k == 0, high = rows - (k == 2);
        const bool whole = job.whole >> k & 1;
        if (whole && first >= low && first + count <= high) {
            for (int i = lane * vector; i < count; i += lanes * vector) copy_vector_async(shared_address(to[k] + i), from + first + i);
        } else {
            for (int i = lane; i < count; i += lanes) {
                if (first + i >= low && first + i < high) copy_async(shared_address(to[k] + i), from + first + i);
                else to[k][i] = k == 1 && first + i >= rows ? T(1) : T(0);
            }
        }
    }
    await_copies();
    __syncwarp();
}

template <class T, int R>
__global__ void __launch_bounds__(lanes* warps_long, 1) one_long_system_kernel(const __grid_constant__ Job<T> job) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    constexpr int Each = LongMemory<T, R>::each, warps = warps_long;
    extern __shared__ __align__(16) unsigned char bytes[];
    LongMemory<T, R>& memory = *reinterpret_cast<LongMemory<T, R>*>(bytes);
    Memory<T, Each>& shared = memory.shared;
    const int lane = static_cast<int>(threadIdx.x) % lanes, warp = static_cast<int>(threadIdx.x) / lanes, block = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x), all = blocks * warps,
              number = block * warps + warp, rows = job.rows, first = number * lanes * R;
    T* const of_warp_rows[4] = {memory.raw[0] + warp * lanes * R, memory.raw[1] + warp * lanes * R, memory.raw[2] + warp * lanes * R, memory.raw[3] + warp * lanes * R};
    bring_rows<T, R>(job, first, lane, of_warp_rows);
    const WarpsOfCluster<T, Each> cluster{shared, lane, number, all, blocks};
    if (threadIdx.x == 0) cluster.prepare();
    __syncwarp();
    arrive_relaxed();
    T *const a = of_warp_rows[0] + lane * R, *const b = of_warp_rows[1] + lane * R, *const c = of_warp_rows[2] + lane * R, *const d = of_warp_rows[3] + lane * R;
    windows::Lane<T, R> state;
    windows::Whole<T> part;
    part.negligible = job.negligible;
    constexpr int some = 4;  // rows of a lane, which say whether sums are wanted
    T lower[some], diag[some], upper[some];
#pragma unroll
    for (int i = 0; i < some; ++i) lower[i] = a[i + 1], diag[i] = b[i + 1], upper[i] = c[i + 1];
    bool sums = hardly_dominant(lower, diag, upper, lane);
    state.reduce_only(a, b, c, d, lane, part, sums);
    wait_for_cluster();
    cluster.show(part);
    begin_outcome(job.outcome, job.status, job.number, rows, job.branch);
    windows::Interface<T> mine[Each];
    T last[Each], head[Each], beside;
    const bool light = cluster.await(mine), certain = solve_parts<T, Each>(mine, light, job.negligible, lane, last, head, beside);
    const T before = number ? cluster.of_warp(last, max(number - 1, 0)) : T(0), end = cluster.of_warp(last, number), own_head = cluster.of_warp(head, number),
            beyond = cluster.of_warp(head, min(number + 1, lanes * Each - 1));
    T x[R], left;
    state.solve(a, c, d, before, end, lane, x, left, part.apart);
    if (lane == 0) x[0] = own_head;  // the very number that the warp before takes it for
    if (certain) {
        state.store(d, x);
    } else {
        const T X = largest_nearby(x, last);
        T after = __shfl_down_sync(~0u, x[0], 1);
        if (lane == lanes - 1) after = number + 1 < all ? beyond : T(0);
        cluster.say_good(state.check(a, b, c, d, x, left, X, job.accept, [&] { return after; }));
        if (!cluster.are_good()) {
            __syncthreads();  // rows make room
            return solve_with_pivots<T, lanes * warps>(job, shared.rows());
        }
    }
    __syncwarp();
    constexpr int vector = 16 / static_cast<int>(sizeof(T)), count = lanes * R;
    const T* const from = of_warp_rows[3];
    if (job.whole & 16 && first + count <= rows)
        for (int i = lane * vector; i < count; i += lanes * vector) *reinterpret_cast<int4*>(job.x + first + i) = *reinterpret_cast<const int4*>(from + i);
    else
        for (int i = lane; i < min(count, rows - first); i += lanes) job.x[first + i] = from[i];
#endif
}

}  // namespace trifold::cuda::one_system
