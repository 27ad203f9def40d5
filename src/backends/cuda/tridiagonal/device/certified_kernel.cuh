// SPDX-License-Identifier: BSD-3-Clause
// One long system in one pass, bounded, or several without a bound:   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i],   i = 0 … rows-1
//
// Shapes: a, b, c, d, x are vectors with any stride, or scalars (not x); x may be d. Overwritten: x.
// Who does what: a block takes window after window, the whole device side by side, so that memory is walked through in order; while one
//   window is solved the next is on its way (certified_load.cuh). Each of its warps solves 32 chunks, of which it keeps those in the middle, and
//   neighbouring warps overlap by the halos (certified_warp.cuh). What the two sides of a seam say of each other is compared: between warps by
//   the block, between windows by each block when it is done, and the kernel behind decides; in place by all blocks together, or by the last one where
//   windows are few, and the last one decides.
// Words per row: 4 read, 1 written; halos from the cache. In place, what would not be made again from x to rounding is written once more.
// Several systems that lie one after the other are one to which couplings between them are cleared as they come.
// Numerics: no pivoting. Of every row stored |rhs - A x| ≤ accept (|a|+|b|+|c|) X was seen, X the largest |x| of its chunk and the two beside it;
//   seams included, where a violation counts only beyond 2^-40 accept of the largest |x| of all. That is a small backward error,
//   whatever the matrix. The certificate turns residuals into a bound of the error: docs/algorithms/gpu_single_bound.md.
#pragma once

#include <cooperative_groups.h>

#include <utility>

#include "backends/cuda/tridiagonal/device/certified_load.cuh"
#include "backends/cuda/tridiagonal/device/certified_verdict.cuh"
#include "backends/cuda/tridiagonal/device/certified_warp.cuh"
#include "backends/cuda/tridiagonal/device/overlap.cuh"

namespace trifold::cuda::certified {

template <class T, int R, int Warps>
inline constexpr int shared_bytes = 32 + static_cast<int>(sizeof(T)) * (2 * Stage<T, R, Warps>::all_elements + Warps * WarpRows<T>::words + 2 * Warps * 8);
/// Of which the maxima of warps take the place of seams when these have been looked at.
static_assert(sizeof(Maxima<double>) == 32 && sizeof(Maxima<float>) == 32);

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

/// Word m of the block's maxima, by thread m < 8. All threads.
template <class T>
__device__ __forceinline__ unsigned gather(const Maxima<T>& most, unsigned* words) {
    const unsigned own[] = {held_bits(most.largest), held_bits(most.inner), held_bits(most.ends), held_bits(most.inner_unit),
                            held_bits(most.ends_unit), held_bits(most.reach), held_bits(most.growth), held_bits(most.excess)};
    unsigned* const of_warp = words + threadIdx.x / 32 * 8;
#pragma unroll
    for (int m = 0; m < 8; ++m) {
        const unsigned most_of_warp = __reduce_max_sync(~0u, own[m]);
        if (threadIdx.x % 32 == 0) of_warp[m] = most_of_warp;
    }
    __syncthreads();
    unsigned most_of_block = 0;
    if (threadIdx.x < 8)
#pragma unroll
        for (int w = 0; w < judge_threads / 32; ++w) most_of_block = max(most_of_block, words[8 * w + threadIdx.x]);
    return most_of_block;
}

/// By one block, when all others are done: docs/algorithms/gpu_single_bound.md, "The verdict". seams: whether those between windows have not been looked at yet.
template <class T>
__device__ __forceinline__ void decide(const Job<T>& job, unsigned* parts, bool seams) {
    const bool mine = job.mine();
    Largest<T> excess;
    if (seams) add_excess(job, static_cast<int>(threadIdx.x), judge_threads, excess);
    gather_blocks(job.verdict, parts);
    const unsigned most_excess = __reduce_max_sync(~0u, held_bits(excess));
    if (threadIdx.x % 32 == 0) parts[8 + threadIdx.x / 32] = most_excess;
    __syncthreads();
    if (threadIdx.x != 0 || !mine) return;
    for (int w = 0; w < judge_threads / 32; ++w) parts[7] = max(parts[7], parts[8 + w]);
    if (seams_hold(job.verdict, parts)) conclude(job.verdict, parts, job.outcome);
    else job.give_up();
}

/// How many have come before; what these had written is seen. One instruction in place of an atomic between two fences.
__device__ __forceinline__ unsigned count_arrival(unsigned* counter) {
    unsigned before;
    asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
    return before;
}

/// In place: rhs beside the seams, before anything is overwritten, by way of memory that the first window has left. All threads of all blocks; what is saved is read by the
/// copy engine after their next meeting.
template <class T, int R, int Warps>
__device__ __forceinline__ void save(const Job<T>& job, T* memory, Arrival arrival) {
    using Stages = Stage<T, R, Warps>;
    constexpr int side = halo * R, room = 4 * Stages::elements;
    const int thread = static_cast<int>(threadIdx.x), pitch = static_cast<int>(Stages::saved_elements()), together = min(room / pitch, 32 * Warps);
    const auto row_of = [&](int seam) { return (seam + std::int64_t{1}) * job.kept * R - side; };
    const T* const rhs = job.input[3].data;
    const int count = job.input[3].path == Input<T>::Path::bulk ? max(job.windows - 2, 0) : 0;  // the last seam may lie less than a halo before the end
    const int each = (count + static_cast<int>(gridDim.x) - 1) / static_cast<int>(gridDim.x), last = min((static_cast<int>(blockIdx.x) + 1) * each, count);
    if (thread == 0) arrival.prepare(1);
    __syncthreads();
    unsigned parity = 0;
    for (int first = static_cast<int>(blockIdx.x) * each; first < last; first += together, parity ^= 1) {
        const int here = min(together, last - first);
        constexpr unsigned bytes = 2 * side * sizeof(T);
        if (thread == 0) arrival.expect(here * bytes);
        if (thread < here) arrival.copy(shared_address(memory + thread * pitch + Stages::pad()), rhs + row_of(first + thread), bytes);
        arrival.wait(parity);
        if (thread == 0) send_bulk(job.saved + first * std::int64_t{pitch}, shared_address(memory), static_cast<unsigned>(here * pitch * static_cast<int>(sizeof(T)))), await_sent();
        __syncthreads();
    }
    const int all = static_cast<int>(gridDim.x) * 32 * Warps, own = static_cast<int>(blockIdx.x) * 32 * Warps + thread;
    for (std::int64_t v = std::int64_t{2} * count * side + own; v < (job.windows - 1) * std::int64_t{2} * side; v += all) {
        const int seam = static_cast<int>(v / (2 * side)), r = static_cast<int>(v % (2 * side));
        if (row_of(seam) + r < job.rows) job.saved[seam * std::int64_t{pitch} + Stages::pad() + r] = rhs[(row_of(seam) + r) * job.input[3].row_stride];
    }
    if (own == 0) job.stored[job.windows] = 1;
    asm volatile("fence.proxy.async;" ::: "memory");
}

/// Several: systems one after the other, as Job::each has them. InPlace: x is rhs.
template <class T, int R, int Warps, bool Several, bool InPlace>
__global__ void __launch_bounds__(32 * Warps, 1) sweep_kernel(const __grid_constant__ Job<T> job) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    using Stages = Stage<T, R, Warps>;
    extern __shared__ __align__(128) unsigned char shared[];
    const int thread = static_cast<int>(threadIdx.x), lane = thread & 31, warp = thread >> 5;
    T* const memory = reinterpret_cast<T*>(shared);
    const unsigned barriers = shared_address(shared) + shared_bytes<T, R, Warps> - 32;
    T* const scratch = memory + 2 * Stages::all_elements + warp * WarpRows<T>::words;
    Seam<T>* const meeting = reinterpret_cast<Seam<T>*>(memory + 2 * Stages::all_elements + Warps * WarpRows<T>::words);
    const auto stage_of = [&](int j) { return Stages{memory + (j & 1) * Stages::all_elements, barriers + 8 * (j & 1)}; };
    const int stride = static_cast<int>(gridDim.x), each = lanes - 2 * halo;
    // A launch for the outcome alone, before this one, would take the host 5 us. So all blocks meet once, while their first window comes and is solved. Its rows are
    // asked for before that, by a thread that has nothing to say to other blocks.
    if (thread == Stages::storer) stage_of(0).prepare(job), stage_of(1).prepare(job);
    if (!job.all_bulk) __syncthreads();
    stage_of(0).load_first(job, static_cast<int>(blockIdx.x), Stages::storer);
    stage_of(1).template load<false>(job, static_cast<int>(blockIdx.x) + stride, Stages::storer);
    if (blockIdx.x == 0 && thread == 0) *job.outcome = job.fresh;
    if constexpr (InPlace)
        for (int w = static_cast<int>(blockIdx.x) * 32 * Warps + thread; w <= job.windows; w += static_cast<int>(gridDim.x) * 32 * Warps) job.stored[w] = 0;
    const bool judged_next = !InPlace && job.judged_next;
    if (judged_next && !job.all_judge) clear_sides(job);
    const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    auto met = grid.barrier_arrive();
    Maxima<T> most;
    bool given_up = false, ended = false;
    int j = 0, offset = 0, further = 0;  // of the window's halo within a system; what the next one's is further on
    if constexpr (Several) {
        offset = static_cast<int>((static_cast<std::int64_t>(blockIdx.x) * job.kept * R + job.each - halo * R) % job.each);
        further = static_cast<int>(static_cast<std::int64_t>(stride) * job.kept * R % job.each);
    }
    for (int window = static_cast<int>(blockIdx.x); window < job.windows; window += stride, ++j) {
        const Stages stage = stage_of(j);
        unsigned long long handed_over = 0;  // not looked at before it has come, nor in the first turn, when it may not be reset. In place all go on, so that over which
        if constexpr (!InPlace) handed_over = *const_cast<volatile unsigned long long*>(&job.outcome->handed_over);  // right-hand sides x is stored does not depend on who looks when
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
        bool fails = part.solve(job, a, b, c, d, chunk, scratch, lane, j < job.wary), unstable = false;
        T allowed = 0;
        const bool keeps = part.active && lane >= halo && lane < lanes - halo;
        const int first = window * job.kept + warp * each, last = min(first + each, job.chunks) - 1;
        if (keeps) {
            Side<T> above, below;
            T* const x = stage.at(4) + (warp * each + lane - halo) * R;
            unstable = part.keep(job, a, b, c, d, x, most, above, below), fails |= unstable, allowed = above.allowed;
            if (Several && begins > 0 && begins < R) fails |= part.keep_apart(job, begins, a, b, c, d, x, above, below);
            if (InPlace && chunk == first) job.inner[2 * (window * Warps + warp)] = above.seen;
            if (InPlace && chunk == last) job.inner[2 * (window * Warps + warp) + 1] = below.seen;
            if (chunk == first && first > 0) {
                if (warp > 0) meeting[(j & 1) * Warps + warp - 1].below = above;
                else job.seams[window - 1].below = above;
            }
            if (chunk == last && last + 1 < job.chunks) {
                if (warp + 1 < Warps) meeting[(j & 1) * Warps + warp].above = below;
                else job.seams[window].above = below;
            }
        }
        const bool own = fails;
        fails |= j > 0 && handed_over != 0;
        leave_to_copies();
        Stages::stored();  // the window before this one: its memory is written next
        if (j == 0) grid.barrier_wait(std::move(met));  // the outcome is reset
        bool unknown = false;
        given_up = __syncthreads_or(fails || (InPlace && part.unknown));
        if (InPlace && given_up) {
            unknown = __syncthreads_or(part.unknown), given_up = __syncthreads_or(fails);
            if (unknown) stage.keep_rhs(job, window);
        }
        if (given_up && thread == 0) job.give_up();
        if (given_up && j == 0) {  // what later windows find depends on who looks when
            const int lanes_so = __syncthreads_count(unstable && part.is_unstable(a, b, c, d, stage.at(4) + (warp * each + lane - halo) * R, 8 * allowed));
            // Where most are, rows are alike, and lanes of other lengths may do.
            if (thread == 0 && lanes_so > 0 && lanes_so <= each * Warps / 2) atomicAdd(&job.outcome->unstable, 1u);
            const unsigned least = __reduce_min_sync(~0u, own ? part.forgotten : ~0u);
            if (lane == 0) atomicMin(&job.outcome->forgets, least);
        }
        if (InPlace && j == 0) {
            grid.sync();  // nothing is saved where a first window gives up
            given_up = !job.mine();
            if (!given_up) {
                save<T, R, Warps>(job, memory, Arrival{barriers + 16});
                // The second window has come before its halos may be overwritten.
                await_copies();
                if (window + stride < job.windows) stage_of(1).wait(0);
                grid.sync();
                asm volatile("fence.proxy.async;" ::: "memory");
            }
        }
        if (given_up && !(InPlace && j > 0)) {
            ++j, ended = true;
            break;
        }
        stage.template load<InPlace>(job, window + 2 * stride, 0);
        if (InPlace && given_up) continue;
        stage.store(job, window);
        if (InPlace && thread == 0) job.stored[window] = unknown ? x_and_rhs : x_alone;
        if (lane == 0 && warp + 1 < Warps && last + 1 < job.chunks) most.excess.add(excess_of(meeting[(j & 1) * Warps + warp].above, meeting[(j & 1) * Warps + warp].below));
    }
    let_the_next_begin();
    // No copy may be on its way to or from a block that has ended: what was asked for whole has to arrive.
    await_copies();
    const int next = static_cast<int>(blockIdx.x) + j * stride;
    if (next < job.windows) stage_of(j).wait(j >> 1 & 1);
    Stages::stored();
    if (ended) {  // nobody asks any more
        if (job.all_judge) static_cast<void>(grid.barrier_arrive());
        return;
    }
    static_assert(32 * Warps == judge_threads && Warps == most_warps);
    if (job.all_judge) {
        grid.sync();
        add_excess(job, static_cast<int>(blockIdx.x) * judge_threads + thread, stride * judge_threads, most.excess);
    } else if (judged_next) {
        static_cast<void>(look_at_seams(job, most.excess));  // where others have given up, nobody asks what is said here
    }
    __syncthreads();
    unsigned* const words = reinterpret_cast<unsigned*>(meeting);
    const unsigned of_block = gather(most, words);
    if (thread < most_warps) job.verdict.words[thread * job.verdict.count + static_cast<int>(blockIdx.x)] = of_block;
    if (judged_next) return;
    __syncthreads();
    bool last = false;
    if (thread == 0) last = count_arrival(&job.outcome->judged) == gridDim.x - 1;
    if (__syncthreads_or(last)) decide(job, words, !job.all_judge);
#endif
}

/// In place, where the pass gave up: rhs again where x was stored. That x is right to 2^-6, and satisfies equations to rounding: so do those made from it, whatever solves them then. Or rhs was kept.
template <class T, int R, int Warps>
__global__ void restore_kernel(const __grid_constant__ Job<T> job) {
    extern __shared__ __align__(128) unsigned char shared[];
    T* const x = reinterpret_cast<T*>(shared);
    after_the_kernel_before();
    if (*const_cast<volatile unsigned long long*>(&job.outcome->handed_over) != windows_turn || !job.stored[job.windows]) return;
    const auto value = [&](int k, std::int64_t row) { return job.input[k].data ? job.input[k].data[row * job.input[k].row_stride] : job.input[k].value; };
    const int each = job.kept / Warps * R;  // rows of a warp
    for (int window = static_cast<int>(blockIdx.x); window < job.windows; window += static_cast<int>(gridDim.x)) {
        if (!job.stored[window]) continue;
        const std::int64_t first = static_cast<std::int64_t>(window) * job.kept * R;
        const int count = static_cast<int>(min(static_cast<std::int64_t>(job.kept) * R, job.rows - first));
        if (job.stored[window] == x_and_rhs) {
            for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) job.x[(first + i) * job.x_stride] = job.kept_rhs[first + i];
            continue;
        }
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
