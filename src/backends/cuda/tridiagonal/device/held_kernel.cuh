// SPDX-License-Identifier: BSD-3-Clause
// One system that all multiprocessors hold:   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i],   i = 0 … rows-1
//
// Shapes: a, b, c, d, x are vectors with any strides, or scalars (not d, x); x may be d. Overwritten: x, where it holds; out of place also where it does not.
// Who does what: a block per multiprocessor, and of 15 of its warps a lane up to 17 (FP32 35) rows (held_lane.cuh), the matrix in shared memory, rhs and x in registers. Lanes of a warp are joined, then warps of a block; what is left of a block
//   are six words, which all blocks see. The 16th warp of each block (held_joint.cuh) solves the system of all blocks' last unknowns, by the same operations on the same words, and so all find the same bits. Then the way back. One
//   cooperative launch; words are waited for by their value (windows_couple.cuh).
// Words per row: 4 read, 1 written, whatever the matrix forgets. Roof: memory, for half of the time where registers and shared memory are full; the rest are latencies: a launch, 17 (35) eliminations one after the other and back, 5 + 4 joins, a
//   message through the second-level cache, 5 blocks of a lane one after the other and 5 joins.
// Numerics: no pivoting. Where no row that elimination leaves takes more than itself of its neighbours x is good as it is (thread/weight.cuh; all blocks see the same); else of every row |rhs - A x| ≤ accept (|a|+|b|+|c|) X is
//   seen, X the largest |x| of its warp, of the block's other warps' last rows and the two beside it. Unknowns at seams are the same bits on both sides. Where all rows are dominant and forget, a bound of the error follows
//   from how much they are (docs/algorithms/gpu_single_bound.md). What does not hold is handed over, as by windows with halos.
#pragma once

#include <cooperative_groups.h>

#include <utility>

#include "backends/cuda/tridiagonal/device/held_joint.cuh"
#include "backends/cuda/tridiagonal/device/held_rows.cuh"
#include "backends/cuda/tridiagonal/device/overlap.cuh"

namespace trifold::cuda::held {

/// The news of all blocks come to shared memory, by all warps that have rows; or some block has given up, and nobody waits any more.
template <class T>
__device__ __forceinline__ void gather_news(const Job<T>& job, Memory<T>& shared) {
    constexpr int words = 16 / static_cast<int>(sizeof(T)), vectors = static_cast<int>(sizeof(News<T>)) / 16, place_of_light = 6 % words;
    static_assert(sizeof(News<T>) == 8 * sizeof(T));
    volatile int& given_up = shared.given_up;
    for (int v = static_cast<int>(threadIdx.x) - lanes; v < static_cast<int>(gridDim.x) * vectors; v += warps * lanes) {
        const T* const from = reinterpret_cast<const T*>(job.news) + v * words;
        for (bool there = false; !there && !given_up;) {
            T some[words];
            if constexpr (words == 2) asm volatile("ld.volatile.global.v2.f64 {%0, %1}, [%2];" : "=d"(some[0]), "=d"(some[1]) : "l"(from) : "memory");
            else asm volatile("ld.volatile.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(some[0]), "=f"(some[1]), "=f"(some[2]), "=f"(some[3]) : "l"(from) : "memory");
            there = true;
#pragma unroll
            for (int w = 0; w < words; ++w) there = there && !windows::is_nothing(some[w]);
            if (!there) continue;
#pragma unroll
            for (int w = 0; w < words; ++w) reinterpret_cast<T*>(shared.all)[v * words + w] = some[w];
            if (v % vectors == vectors - 1 && some[place_of_light] < T(0)) given_up = 1;
        }
    }
}

/// Where rows do not do without pivots: by the first thread, when the outcome is reset.
template <class T>
__device__ __forceinline__ void hand_over(const Job<T>& job, int lanes_so) {
    atomicMax(&job.outcome->handed_over, windows_turn), job.outcome->branch = static_cast<int>(tridiagonal::Algorithm::certified);
    // Where most are, rows are alike, and lanes of other lengths may do.
    if (lanes_so > 0 && lanes_so <= lanes * warps / 2) atomicAdd(&job.outcome->unstable, 1u);
}

template <class T>
__global__ void __launch_bounds__(threads, 1) held_kernel(const __grid_constant__ Job<T> job) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    constexpr int R = most_rows<T>;
    extern __shared__ __align__(128) unsigned char bytes[];
    Memory<T>& shared = *reinterpret_cast<Memory<T>*>(bytes);
    const int thread = static_cast<int>(threadIdx.x), lane = thread % lanes, warp = windows::alike(thread / lanes) - 1, rows = job.rows_of_lane, of_warp = lanes * rows;
    const auto rows_of = [&](int w) { return WarpRows<T>{job, (static_cast<std::int64_t>(blockIdx.x) * warps + w) * of_warp, of_warp}; };
    const auto place = [&](int k, int w) { return shared.rows(k, rows, job.tight) + w * of_warp; };
    const auto arrival = [&](int k, int w) { return Arrival{shared_address(&shared.arrived[k != 3][w])}; };
    // Not by the thread that meets other blocks behind a fence: fences wait for what is under way.
    if (warp >= 0) {
        const WarpRows<T> own = rows_of(warp);
        if (lane == 0) {
            arrival(3, warp).prepare(1), arrival(0, warp).prepare(1);
            arrival(3, warp).expect(own.bytes(3)), arrival(0, warp).expect(own.bytes(0) + own.bytes(1) + own.bytes(2));
        }
        __syncwarp();
        if (lane < 4 && !(job.tight && lane == 0)) own.ask(lane, place(lane, warp), arrival(lane, warp));
    }
    if (blockIdx.x == 0 && thread == 0) *job.outcome = job.fresh;
    if (thread == 0) shared.given_up = 0;
    if (thread < static_cast<int>(sizeof(News<T>) / sizeof(T))) reinterpret_cast<T*>(job.news + blockIdx.x)[thread] = windows::nothing_yet<T>();
    const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    auto met = grid.barrier_arrive();

    // When all words are nothing yet, and the outcome is reset: whether the block goes on.
    const auto meet = [&](bool grown) {
        grid.barrier_wait(std::move(met));
        const int lanes_so = __syncthreads_count(grown);
        if (lanes_so == 0) return true;
        if (thread == 0) hand_over(job, lanes_so);
        if (thread < static_cast<int>(sizeof(News<T>) / sizeof(T))) show(reinterpret_cast<T*>(job.news + blockIdx.x)[thread], T(-1));
        return false;
    };
    // And whether all do, when the news of all are there.
    const auto goes_on = [&] {
        __syncthreads();
        return !shared.given_up;
    };
    // Of those whose residuals are looked at; far: by far too large.
    const auto are_good = [&](bool good, auto far) {
        bool all_good = !__syncthreads_or(!good);
        if (!all_good) {
            const int lanes_so = __syncthreads_count(far());
            if (thread == 0) hand_over(job, lanes_so);
        }
        if (job.in_place) {
            grid.sync();
            all_good = *const_cast<volatile unsigned long long*>(&job.outcome->handed_over) == 0;
        }
        return all_good;
    };

    if (warp < 0) {
        BlockJoint<T> joint{job, shared, lane, {}, {}, false};
        // Code comes from memory too, behind the rows: where they are many, it is gone through once for nothing while they are waited for.
        constexpr int many = 9;
#pragma unroll 1
        for (bool real = rows < many;; real = true) {
            if (real && !meet(false)) return;
            joint.join(real);
            if (real && !goes_on()) return;
            joint.solve(real);
            if (real) break;
        }
        __syncthreads();
        let_the_next_begin();
        if (!shared.certain) are_good(true, [] { return false; });
        return;
    }
    Lane<T, R> state;
    const WarpRows<T> own = rows_of(warp);
    for (int k = job.tight ? 1 : 0; k < 4; ++k) own.fill(k, place(k, warp));
    await_copies();
    arrival(3, warp).wait(0);
    __syncwarp();
    const T* const d = place(3, warp) + lane * rows;
#pragma unroll
    for (int i = 0; i < R; ++i) {
        if (i >= rows) break;
        state.d[i] = d[i];
    }
    if (job.tight) {
        __syncwarp();
        if (lane == 0) own.ask(0, place(0, warp), arrival(0, warp));
        own.fill(0, place(0, warp));
        await_copies();
    }
    arrival(0, warp).wait(0);
    __syncwarp();
    const T *const a = place(0, warp) + lane * rows, *const b = place(1, warp) + lane * rows, *const c = place(2, warp) + lane * rows;
    constexpr int some = 4;  // rows of a lane, which say whether sums are wanted
    T lower[some], diag[some], upper[some];
#pragma unroll
    for (int i = 0; i < some; ++i) lower[i] = a[i + 1], diag[i] = b[i + 1], upper[i] = c[i + 1];
    Part<T> part;
    state.reduce(a, b, c, rows, lane, job.negligible, windows::hardly_dominant(lower, diag, upper, lane), part);
    part.hardly = __reduce_max_sync(~0u, min(state.hardly, 0x7fffffffu));
    if (lane == 0) shared.parts[warp] = part;
    if (!meet(state.grown)) return;
    gather_news(job, shared);
    if (!goes_on()) return;
    __syncthreads();  // the ends are known
    let_the_next_begin();

    const T before = shared.ends[warp], end = shared.ends[warp + 1], begin = shared.begins[warp];
    const auto leave = [&](T (&x)[R]) {
        T* const to = place(1, warp) + lane * rows;
#pragma unroll
        for (int i = 0; i < R; ++i) {
            if (i >= rows) break;
            to[i] = x[i];
        }
        leave_to_copies();
        __syncwarp();
        own.store(place(1, warp), lane);
    };
    T left;
    if (shared.certain) {
        state.solve(a, c, rows, before, end, lane, state.d, left);
        if (lane == 0) state.d[0] = begin;  // the very number that the warp before takes it for
        return leave(state.d);
    }
    T x[R];
    state.solve(a, c, rows, before, end, lane, x, left);
    if (lane == 0) x[0] = begin;
    T after = __shfl_down_sync(~0u, x[0], 1);
    if (lane == lanes - 1) after = shared.begins[warp + 1];
    Largest<T> largest;
#pragma unroll
    for (int i = 0; i < R; ++i) {
        if (i >= rows) break;
        largest.add(x[i]);
    }
    const T X = fmax(windows::number_of<T>(__reduce_max_sync(~0u, held_bits(largest))) * windows::beyond_cut<T>, shared.largest), allowed = job.accept * X;
    const bool good = state.check(a, b, c, rows, x, left, after, allowed) && windows::Lane<T, R>::is_moderate(X);
    if (are_good(good, [&] { return !state.check(a, b, c, rows, x, left, after, 8 * allowed); })) leave(x);
#endif
}

}  // namespace trifold::cuda::held
