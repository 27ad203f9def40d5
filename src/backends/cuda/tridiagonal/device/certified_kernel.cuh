// SPDX-License-Identifier: BSD-3-Clause
// One long system in one pass, bounded, or several without a bound:   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i],   i = 0 … rows-1
//
// Shapes: a, b, c, d, x are vectors with any stride, or scalars (not x); x may be d. Overwritten: x.
// Who does what: a block takes window after window, the whole device side by side, so that memory is walked through in order; while one
//   window is solved the next is on its way (certified_load.cuh). Each of its warps solves 32 chunks, of which it keeps those in the middle, and
//   neighbouring warps overlap by the halos (certified_warp.cuh). What the two sides of a seam say of each other is compared: between warps by
//   the block, between windows by all blocks when they are done, or by the last one where windows are few; the last one decides.
// Words per row: 4 read, 1 written; halos from the cache.
// Several systems that lie one after the other are one to which couplings between them are cleared as they come.
// Numerics: no pivoting. Of every row stored |rhs - A x| ≤ accept (|a|+|b|+|c|) X was seen, X the largest |x| of its chunk and the two beside it;
//   seams included, where a violation counts only beyond 2^-40 accept of the largest |x| of all. That is a small backward error,
//   whatever the matrix. The certificate turns residuals into a bound of the error: docs/algorithms/gpu_single.md.
#pragma once

#include <cooperative_groups.h>

#include <utility>

#include "backends/cuda/tridiagonal/device/certified_load.cuh"
#include "backends/cuda/tridiagonal/device/certified_warp.cuh"
#include "backends/cuda/tridiagonal/device/overlap.cuh"

namespace trifold::cuda::certified {

template <class T, int R, int Warps>
inline constexpr int shared_bytes = 16 + static_cast<int>(sizeof(T)) * (2 * Stage<T, R, Warps>::all_elements + Warps * WarpRows<T>::words + 2 * Warps * 8);

/// What elimination must not see: lower of the first row, upper of the last one, and the rows that are missing to the last chunk.
template <class T, int R, int Warps>
__device__ __forceinline__ void close_ends(const Job<T>& job, const Stage<T, R, Warps>& stage, int window) {
    const int row = static_cast<int>(threadIdx.x);
    const int pad = stage.pad(), end = pad + (job.kept + 2 * halo) * R;
    if (window == 0 && row == 0) stage.at(0)[pad + halo * R] = 0;
    const std::int64_t at = job.rows + row - static_cast<std::int64_t>(window * job.kept - halo) * R + pad;
    if (row < R && job.rows + row < static_cast<std::int64_t>(job.chunks) * R && at < end)
        stage.at(0)[at] = 0, stage.at(1)[at] = 1, stage.at(2)[at] = 0, stage.at(3)[at] = 0;
    if (row == R && at - R - 1 < end) stage.at(2)[at - R - 1] = 0;
}

/// The same between systems that lie one after the other. offset: of the first row in the window's halo within its system. What several lanes share,
/// each of them clears before it reads it. Returns where a system begins, as the lane counts its rows.
template <class T, int R>
__device__ __forceinline__ int part_systems(const Job<T>& job, T* a, T* c, int offset, int first) {
    const int row = (offset ? job.each - offset : 0) - first;
    if (row >= 0 && row < R) a[row] = 0;
    if (row > 0 && row <= R) c[row - 1] = 0;
    return row;
}

inline constexpr int judge_threads = 256;

/// Of a block's numbers, one per thread. All threads.
__device__ __forceinline__ double largest_of_block(double x, double* parts) {
    x = largest_of_warp(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    for (int w = 0; w < judge_threads / 32; ++w) x = larger(x, parts[w]);
    return x;
}

/// The residual that seams between windows add, those of this block among `blocks`.
template <class T>
__device__ double largest_excess(const Job<T>& job, int block, int blocks, double* parts) {
    double excess = 0;
    for (int s = block * judge_threads + static_cast<int>(threadIdx.x); s < job.windows - 1; s += blocks * judge_threads) {
        T words[sizeof(Seam<T>) / sizeof(T)];
#pragma unroll
        for (int m = 0; m < static_cast<int>(sizeof words / sizeof words[0]); ++m) words[m] = __ldcg(reinterpret_cast<const T*>(job.seams + s) + m);
        excess = larger<double>(excess, excess_of(Side<T>{words[0], words[1], words[2], words[3]}, Side<T>{words[4], words[5], words[6], words[7]}));
    }
    return largest_of_block(excess, parts);
}

/// By one block, when all others are done: docs/algorithms/gpu_single.md, "The verdict". excess_of_all: what seams add, asked for beside the rest.
template <class T, class Excess>
__device__ void decide(const Job<T>& job, double* parts, Excess excess_of_all) {
    static_assert(sizeof(Maxima<T>) == 8 * sizeof(T) && judge_threads == 8 * 32);
    const int m = static_cast<int>(threadIdx.x) / 32;  // a warp per maximum
    constexpr int some = 6;                            // asked for together
    T of_block[some];
#pragma unroll
    for (int i = 0; i < some; ++i) {
        const int k = static_cast<int>(threadIdx.x) % 32 + 32 * i;
        of_block[i] = k < job.sweep_blocks ? __ldcg(reinterpret_cast<const T*>(job.blocks + k) + m) : T(0);
    }
    const double excess = excess_of_all();
    double x = m == 6 ? 1 : 0;
#pragma unroll
    for (int i = 0; i < some; ++i) x = larger<double>(x, of_block[i]);
    for (int k = static_cast<int>(threadIdx.x) % 32 + 32 * some; k < job.sweep_blocks; k += 32) x = larger<double>(x, __ldcg(reinterpret_cast<const T*>(job.blocks + k) + m));
    x = largest_of_warp(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[m] = x;
    __syncthreads();
    if (threadIdx.x != 0) return;
    const double largest = parts[0], inner = parts[1], ends = parts[2], inner_unit = parts[3], ends_unit = parts[4], reach = parts[5], growth = parts[6];
    const double accept = job.accept, floor = job.each ? 0 : 0x1p-40 * accept;  // of several systems one may be small
    if (!(larger(parts[7], excess) <= floor * largest)) {
        job.give_up();
        return;
    }
    // A row's residual: what was accepted, once more at a seam, and the rounding of the residual itself.
    const double theta = 2 * accept + 8 * static_cast<double>(job.roundoff);
    const double perturbed = theta * inner_unit * growth / 4;  // of the chunks' own elimination
    double bound = 1.0625 * theta * (inner + reach * ends);
    if (largest > 0) bound = bound / largest + floor * (inner_unit + reach * ends_unit);
    const bool holds = !job.each && perturbed <= 0x1p-5 && bound <= 0x1p-6;
    job.outcome->reason = static_cast<int>(holds ? Reason::certified : Reason::exact);
    if (holds) job.outcome->certificate = bound;
    job.outcome->certified = holds;
}

/// Several: systems one after the other, as Job::each has them.
template <class T, int R, int Warps, bool Several>
__global__ void __launch_bounds__(32 * Warps, 1) sweep_kernel(const __grid_constant__ Job<T> job) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    using Stages = Stage<T, R, Warps>;
    extern __shared__ __align__(128) unsigned char shared[];
    const int thread = static_cast<int>(threadIdx.x), lane = thread & 31, warp = thread >> 5;
    T* const memory = reinterpret_cast<T*>(shared);
    const unsigned barriers = shared_address(shared) + shared_bytes<T, R, Warps> - 16;
    T* const scratch = memory + 2 * Stages::all_elements + warp * WarpRows<T>::words;
    Seam<T>* const meeting = reinterpret_cast<Seam<T>*>(memory + 2 * Stages::all_elements + Warps * WarpRows<T>::words);
    const auto stage_of = [&](int j) { return Stages{memory + (j & 1) * Stages::all_elements, barriers + 8 * (j & 1)}; };
    if (thread == 0) stage_of(0).prepare(job), stage_of(1).prepare(job);
    __syncthreads();
    const int stride = static_cast<int>(gridDim.x), each = lanes - 2 * halo;
    const auto begin = [&] {
        for (int j = 0; j < 2; ++j) stage_of(j).load(job, static_cast<int>(blockIdx.x) + j * stride);
    };
    // A launch for the outcome alone, before this one, would take the host 5 us. So all blocks meet once, while their rows are on the way; those are asked
    // for after the arrival, which would wait for them.
    if (blockIdx.x == 0 && thread == 0) *job.outcome = job.fresh;
    const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    auto met = grid.barrier_arrive();
    begin();
    grid.barrier_wait(std::move(met));
    Maxima<T> most;
    int j = 0, offset = 0, further = 0;  // of the window's halo within a system; what the next one's is further on
    if constexpr (Several) {
        offset = static_cast<int>((static_cast<std::int64_t>(blockIdx.x) * job.kept * R + job.each - halo * R) % job.each);
        further = static_cast<int>(static_cast<std::int64_t>(stride) * job.kept * R % job.each);
    }
    for (int window = static_cast<int>(blockIdx.x); window < job.windows; window += stride, ++j) {
        const Stages stage = stage_of(j);
        const bool stop = !job.mine();
        stage.wait(j >> 1 & 1);
        const int chunk = window * job.kept - halo + warp * each + lane, at = (warp * each + lane) * R + Stages::pad();
        if (window == 0 || (window + 1) * job.kept + halo >= job.chunks) {
            await_copies();  // the odd elements at the end
            __syncthreads();
            close_ends(job, stage, window);
            __syncthreads();
        }
        const T *const a = stage.at(0) + at, *const b = stage.at(1) + at, *const c = stage.at(2) + at, *const d = stage.at(3) + at;
        int begins = 0;
        if constexpr (Several) {
            begins = part_systems<T, R>(job, stage.at(0) + at, stage.at(2) + at, offset, (warp * each + lane) * R);
            offset += further;
            if (offset >= job.each) offset -= job.each;
        }
        WarpWindow<T, R> part;
        bool fails = part.solve(job, a, b, c, d, chunk, scratch, lane) || stop;
        const bool keeps = part.active && lane >= halo && lane < lanes - halo;
        const int first = window * job.kept + warp * each, last = min(first + each, job.chunks) - 1;
        if (keeps) {
            Side<T> above, below;
            T* const x = stage.at(4) + (warp * each + lane - halo) * R;
            fails |= part.keep(job, a, b, c, d, x, most, above, below);
            if (Several && begins > 0 && begins < R) fails |= part.keep_apart(job, begins, a, b, c, d, x, above, below);
            if (job.inner && chunk == first) job.inner[2 * (window * Warps + warp)] = above.seen;
            if (job.inner && chunk == last) job.inner[2 * (window * Warps + warp) + 1] = below.seen;
            if (chunk == first && first > 0) {
                if (warp > 0) meeting[(j & 1) * Warps + warp - 1].below = above;
                else job.seams[window - 1].below = above;
            }
            if (chunk == last && last + 1 < job.chunks) {
                if (warp + 1 < Warps) meeting[(j & 1) * Warps + warp].above = below;
                else job.seams[window].above = below;
            }
        }
        leave_to_copies();
        Stages::stored();  // the window before this one: its memory is written next
        if (__syncthreads_or(fails)) {
            if (thread == 0) job.give_up();
            ++j;
            break;
        }
        stage.load(job, window + 2 * stride);
        stage.store(job, window);
        if (job.stored && thread == 0) job.stored[window] = 1;
        if (lane == 0 && warp + 1 < Warps && last + 1 < job.chunks)
            most.excess = larger(most.excess, excess_of(meeting[(j & 1) * Warps + warp].above, meeting[(j & 1) * Warps + warp].below));
    }
    let_the_next_begin();
    // No copy may be on its way to a block that has ended: what was asked for whole has to arrive.
    await_copies();
    if (j > 0) {
        const int window = static_cast<int>(blockIdx.x) + j * stride;
        if (window < job.windows) stage_of(j).wait(j >> 1 & 1);
        Stages::sent();
    }
    __syncthreads();
    most = {largest_of_warp(most.largest), largest_of_warp(most.inner), largest_of_warp(most.ends), largest_of_warp(most.inner_unit),
            largest_of_warp(most.ends_unit), largest_of_warp(most.reach), largest_of_warp(most.growth), largest_of_warp(most.excess)};
    T* const words = reinterpret_cast<T*>(meeting);
    if (lane == 0) *reinterpret_cast<Maxima<T>*>(words + 8 * warp) = most;
    __syncthreads();
    if (thread < 8) {
        T largest = words[thread];
        for (int w = 1; w < Warps; ++w) largest = larger(largest, words[8 * w + thread]);
        reinterpret_cast<T*>(job.blocks + blockIdx.x)[thread] = largest;
    }
    static_assert(32 * Warps == judge_threads);
    double* const parts = reinterpret_cast<double*>(memory);
    if (job.all_judge) {
        grid.sync();
        if (!job.mine()) return;
        const double excess = largest_excess(job, static_cast<int>(blockIdx.x), stride, parts);
        if (thread == 0) atomicMax(&job.outcome->seams, static_cast<unsigned long long>(__double_as_longlong(fabs(excess))));
    }
    __syncthreads();
    bool last = false;
    if (thread == 0) {
        __threadfence();
        last = atomicAdd(&job.outcome->judged, 1u) == gridDim.x - 1;
        __threadfence();
    }
    if (!__syncthreads_or(last) || !job.mine()) return;
    decide(job, parts, [&] {
        return job.all_judge ? __longlong_as_double(static_cast<long long>(*const_cast<volatile unsigned long long*>(&job.outcome->seams))) : largest_excess(job, 0, 1, parts);
    });
#endif
}

/// In place: rhs beside the seams, before anything is overwritten.
template <class T, int R, int Warps>
__global__ void save_kernel(const __grid_constant__ Job<T> job) {
    using Stages = Stage<T, R, Warps>;
    after_the_kernel_before();
    const int side = halo * R, pad = Stages::pad(), lane = static_cast<int>(threadIdx.x) & 31;
    const int warp = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) / 32, warps = static_cast<int>(gridDim.x * blockDim.x) / 32;
    for (int seam = warp; seam < job.windows - 1; seam += warps) {
        const std::int64_t first = (seam + std::int64_t{1}) * job.kept * R - side;
        T* const to = job.saved + seam * Stages::saved_elements() + pad;
        const int count = static_cast<int>(min(static_cast<std::int64_t>(2 * side), job.rows - first));
        if (lane < pad) to[lane - pad] = 0;  // copied along, never used
#pragma unroll 4
        for (int i = lane; i < count; i += 32) to[i] = job.input[3].data[(first + i) * job.input[3].row_stride];
    }
    for (int w = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); w < job.windows; w += 32 * warps) job.stored[w] = 0;
}

/// In place, where the pass gave up: rhs again where x was stored, from the equations that this x was checked to satisfy.
template <class T, int R, int Warps>
__global__ void restore_kernel(const __grid_constant__ Job<T> job) {
    extern __shared__ __align__(16) unsigned char shared[];
    T* const x = reinterpret_cast<T*>(shared);
    after_the_kernel_before();
    if (*const_cast<volatile unsigned long long*>(&job.outcome->handed_over) != windows_turn) return;
    const auto value = [&](int k, std::int64_t row) { return job.input[k].data ? job.input[k].data[row * job.input[k].row_stride] : job.input[k].value; };
    const int each = job.kept / Warps * R;  // rows of a warp
    for (int window = static_cast<int>(blockIdx.x); window < job.windows; window += static_cast<int>(gridDim.x)) {
        if (!job.stored[window]) continue;
        const std::int64_t first = static_cast<std::int64_t>(window) * job.kept * R;
        const int count = static_cast<int>(min(static_cast<std::int64_t>(job.kept) * R, job.rows - first));
        for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) x[i] = job.x[(first + i) * job.x_stride];
        __syncthreads();
        for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
            const std::int64_t row = first + i;
            const T* const inner = job.inner + 2 * (window * Warps + i / each);
            const T before = i % each ? x[i - 1] : inner[0], behind = i + 1 < count && (i + 1) % each ? x[i + 1] : inner[1];
            const std::int64_t own = job.each ? row % job.each : row, rows = job.each ? job.each : job.rows;
            const T above = own > 0 ? value(0, row) * before : T(0), below = own + 1 < rows ? value(2, row) * behind : T(0);
            job.x[row * job.x_stride] = above + value(1, row) * x[i] + below;
        }
        __syncthreads();
    }
}

}  // namespace trifold::cuda::certified
