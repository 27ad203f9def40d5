// SPDX-License-Identifier: BSD-3-Clause
// Long systems, one or several, checked:   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i],   i = 0 … rows-1
//
// Shapes: a, b, c, d, x are vectors with any strides, or scalars (not d, x); x may be d. Overwritten: x.
// Who does what: a persistent block per multiprocessor takes every gridDim.x-th window of 256 R rows, so that memory is
//   walked through in order. Eight warps compute, one moves, one couples (windows_roles.cuh). First pass: a window is
//   reduced to two relations, coupled to those around it, finished, checked and stored, in one go, as long as windows
//   forget each other; where they do not, it is reduced only, the chain of all windows is solved (windows_chain.cuh),
//   and a second pass reads again and finishes. One cooperative launch, in which what needs pivots takes two more (two_pass_chain.cuh).
// Words per row: 4 read, 1 written; where a second pass is wanted 4 more. Some 20 words per window beside. In place 1 more written, by either pass: rhs, which x
//   is stored over before all windows are known to be good.
// Flops, fused ones counted once: 20 and a reciprocal per row to reduce, 12 to finish and check; 120 and 7 reciprocals
//   per lane to join. Roof: memory, which in double precision takes as long as 130 of them per row; instructions that
//   are issued one after the other come near it.
// Numerics: no pivoting. Of every row stored, but where all of a warp's rows are dominant, |rhs - A x| ≤ accept (|a|+|b|+|c|) X was seen, X the largest |x| of its
//   warp, of the window's other warps' last rows and the two beside it; seams included, where a violation counts only beyond 2^-40 accept of the largest |x|
//   of its system. That is a small backward error, whatever the matrix. The certificate turns residuals into a bound of
//   the error: docs/algorithms/gpu_single_bound.md.
#pragma once

#include "backends/cuda/tridiagonal/device/certified_verdict.cuh"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/device/two_pass_chain.cuh"
#include "backends/cuda/tridiagonal/device/windows_roles.cuh"
#include "backends/cuda/tridiagonal/device/windows_wide.cuh"

namespace trifold::cuda::windows {

/// What blocks of earlier solves left in scratch. Own windows are cleared by their block alone, systems by all.
template <class T>
__device__ __forceinline__ void clear(const Job<T>& job) {
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x),
              blocks = static_cast<int>(gridDim.x), block = static_cast<int>(blockIdx.x);
    for (int i = thread; block + static_cast<std::int64_t>(i) * blocks < job.windows; i += threads) {
        T* const words = reinterpret_cast<T*>(job.interfaces + block + i * blocks);
        for (int k = 0; k < 6; ++k) words[k] = nothing_yet<T>();
        job.stored[block + i * blocks] = 0, job.ends[block + i * blocks] = nothing_yet<T>();
    }
    for (std::int64_t k = static_cast<std::int64_t>(block) * threads + thread; k < job.levels.systems;
         k += static_cast<std::int64_t>(blocks) * threads)
        job.state[k] = good, job.largest[k] = 0;
}

/// In place, where x was stored and does not stay: rhs again. All threads; `list`: room for one.
template <class T>
__device__ void restore(const Job<T>& job, int* list, int window_rows, int kept_rows, State from) {
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x),
              blocks = static_cast<int>(gridDim.x);
    for (int base = static_cast<int>(blockIdx.x); base < job.windows; base += threads * blocks) {
        __syncthreads();
        if (thread == 0) list[0] = 0;
        __syncthreads();
        const std::int64_t candidate = base + static_cast<std::int64_t>(thread) * blocks;
        if (candidate < job.windows && job.stored[candidate] && job.state_of(static_cast<int>(candidate) / job.per_system) >= from)
            list[1 + atomicAdd(list, 1)] = static_cast<int>(candidate);
        __syncthreads();
        for (int f = list[0]; f > 0; --f) {
            const int w = list[f], k = w / job.per_system, part = w - k * job.per_system;
            std::int64_t index[4];
            job.levels.indices(k, index);
            const Line<T> to = line_of(job.x, index);
            const std::int64_t first = static_cast<std::int64_t>(part) * window_rows;
            const int count = static_cast<int>(min(static_cast<std::int64_t>(window_rows), job.rows - first));
            const T* const rhs = job.kept + static_cast<std::int64_t>(w) * kept_rows + (job.stored[w] - 1);
            for (int i = thread; i < count; i += threads) to.at(first + i) = rhs[i];
        }
        __syncthreads();
        if (thread < list[0]) job.stored[list[1 + thread]] = 0;
    }
    asm volatile("fence.proxy.async;" ::: "memory");  // the copy engine reads it next
    __syncthreads();
}

/// The seams between windows, by all threads of all blocks.
template <class T>
__device__ __forceinline__ void check_seams(const Job<T>& job) {
    const int threads = static_cast<int>(gridDim.x * blockDim.x);
    for (int s = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); s < job.windows - 1; s += threads) {
        const int k = s / job.per_system;
        if ((s + 1) / job.per_system != k) continue;
        const unsigned state = job.state_of(k);
        if (state == left || (state == again && !job.second)) continue;
        const double floor = 0x1p-40 * static_cast<double>(job.accept) *
                             static_cast<double>(number_of<T>(*const_cast<volatile unsigned*>(job.largest + k)));
        if (!(static_cast<double>(excess_of(job.seams[s].above, job.seams[s].below)) <= floor)) job.demote(k, left);
    }
}

/// By the first warp of the last block: docs/algorithms/gpu_single_bound.md, "The verdict".
template <class T>
__device__ void judge(const Job<T>& job) {
    if (threadIdx.x >= lanes) return;
    Maxima most;
    for (unsigned k = threadIdx.x; k < gridDim.x; k += lanes) {
        const volatile Maxima& other = job.maxima[k];
        most = {max(most.inner, other.inner), max(most.reach, other.reach), max(most.growth, other.growth),
                fmaxf(most.ends, other.ends)};
    }
    most = {__reduce_max_sync(~0u, most.inner), __reduce_max_sync(~0u, most.reach), __reduce_max_sync(~0u, most.growth),
            largest_of_warp(most.ends)};
    if (threadIdx.x != 0) return;
    const auto handed_over = *const_cast<volatile unsigned long long*>(&job.outcome->handed_over);
    if (handed_over > windows_turn + (job.second ? again : good)) {
        if (!job.second) report_failure(job.outcome, job.status, job.levels.number, -1, Reason::not_certified);
        return;  // else what is left is solved by others
    }
    if (job.levels.systems != 1) return;
    const auto number = [](unsigned bits) { return static_cast<double>(number_of<T>(bits)) * (1 + 0x1p-19); };
    const double inner = number(most.inner), reach = larger(number(most.reach), 1.0),
                 growth = larger(number(most.growth), 1.0), ends = most.ends;
    // A row's residual: what was accepted, once more at a seam, and the rounding of the residual itself.
    const double accept = job.accept, theta = 2 * accept + 8 * static_cast<double>(job.roundoff);
    const double perturbed = theta * inner * growth / 4;  // of the chunks' own elimination
    const double bound = (1.0625 * theta + 0x1p-40 * accept) * (inner + reach * ends);
    if (!(perturbed <= 0x1p-5 && bound <= 0x1p-6)) return;
    job.outcome->reason = static_cast<int>(Reason::certified);
    job.outcome->certificate = bound;
    job.outcome->certified = true;
}

/// Whether windows with halos have solved all, which they have left to this kernel to conclude: that spares them a meeting, and this one reads a word in any case. parts: shared memory.
template <class T>
__device__ __forceinline__ bool halos_do(const Job<T>& job, unsigned* parts) {
    const bool given_up = *const_cast<volatile unsigned long long*>(&job.outcome->handed_over) >= windows_turn;
    if (job.halos.count == 0) return alike(!given_up);
    const unsigned warp = threadIdx.x / lanes;  // others than the first block ask for what decides alone
    if (blockIdx.x == 0 ? warp < certified::most_warps : warp == 0 || warp == 7) certified::gather_blocks(job.halos, parts);
    __syncthreads();
    const bool do_all = alike(!given_up && certified::seams_hold(job.halos, parts));
    if (blockIdx.x == 0 && threadIdx.x == 0 && !given_up) {
        if (do_all) certified::conclude(job.halos, parts, job.outcome);
        else *const_cast<volatile unsigned long long*>(&job.outcome->handed_over) = windows_turn;  // others may see it before they have found it: it is the same
    }
    __syncthreads();
    return do_all;
}

/// An eighth of all blocks has found lanes that do not do without pivots: others would not either, and what they find in vain takes as long as one system's pivots.
template <class T>
__device__ __forceinline__ bool is_unstable(const Job<T>& job) {
    return job.second && job.levels.systems == 1 && job.blocks_before > 0 && alike(8 * *const_cast<volatile unsigned*>(&job.outcome->unstable) >= static_cast<unsigned>(job.blocks_before));
}

/// With: where windows with wide halos may do. What never takes them is not charged for their registers.
template <class T, int R, int Warps, bool With>
__global__ void __launch_bounds__(lanes*(Warps + helpers + others), 1) window_kernel(const __grid_constant__ Job<T> job, const __grid_constant__ two_pass::Left<T> to_pivots) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) unsigned char bytes[];
    using Shared = Memory<T, R, Warps>;
    Shared& shared = *reinterpret_cast<Shared*>(bytes);
    T* const memory = &shared.raw[0][0][0];
    int* const list = reinterpret_cast<int*>(memory);
    constexpr int room = sizeof shared.raw / sizeof(T);
    static_assert(two_pass::ThirdOfBlock::per_block * two_pass::ThirdOfBlock::room <= sizeof shared.raw);
    const int lane = static_cast<int>(threadIdx.x) % lanes, warp = alike(static_cast<int>(threadIdx.x) / lanes);
    after_the_kernel_before();
    const unsigned forgets = With ? *const_cast<volatile unsigned*>(&job.outcome->forgets) : 0;
    if (job.after_others && halos_do(job, reinterpret_cast<unsigned*>(bytes))) return;
    Maxima most, of_wide;
    const bool unstable = is_unstable(job);
    bool solved = false;
    if constexpr (With) {
        const int halo = halo_of(job, forgets);
        solved = halo > 0 && !unstable && solve_widely(&job, halo, bytes, &of_wide);
        if (solved) most = of_wide;
    }
    if (unstable) {
        if (blockIdx.x == 0 && threadIdx.x == 0) job.state[0] = good, job.demote(0, left);
    } else if (!solved) {
        if (warp == Warps) Mover<T, R, Warps>{job, shared, lane}.prepare();
        clear(job);
        __syncthreads();

        Block<T, R, Warps> block{job, shared, warp, lane};
        unsigned meetings = 1;
        const auto sweep = [&](auto second) {
            if (warp < Warps) {
                block.template compute<second()>(most);
            } else if (warp == Warps) {
                block.move();
            } else if (warp >= Warps + helpers) {  // of the pivoted passes
                if (job.in_place && warp == Warps + helpers) block.keep_rhs();
            } else if constexpr (second()) {
                block.fetch_ends();
            } else {
                if (lane == 0) {  // nobody looks at what others have not cleared yet
                    __threadfence();
                    atomicAdd(&job.outcome->arrived, 1u);
                    while (seen(&job.outcome->arrived) < gridDim.x) {
                    }
                }
                __syncwarp();
                block.solve_ends();
            }
        };
        sweep(std::false_type{});
        meet(job, meetings);
        if (job.second && *const_cast<volatile unsigned*>(&job.outcome->undecayed)) {
            if (job.in_place) restore(job, list, Shared::rows, Shared::elements, again);
            solve_chain(job, memory, room, meetings);
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            __syncthreads();
            most = {};
            block.second = true;
            sweep(std::true_type{});
            meet(job, meetings);
        }
        check_seams(job);
        if (job.in_place) {
            meet(job, meetings);
            const State from = job.second ? left : again;
            if (*const_cast<volatile unsigned long long*>(&job.outcome->handed_over) >= windows_turn + from)
                restore(job, list, Shared::rows, Shared::elements, from);
        }
    }

    __syncthreads();
    Maxima* const of_warps = reinterpret_cast<Maxima*>(memory);
    most = {__reduce_max_sync(~0u, most.inner), __reduce_max_sync(~0u, most.reach), __reduce_max_sync(~0u, most.growth),
            largest_of_warp(most.ends)};
    if (lane == 0 && warp < Warps) of_warps[warp] = most;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < Warps; ++w) {
            const Maxima& other = of_warps[w];
            most = {max(most.inner, other.inner), max(most.reach, other.reach), max(most.growth, other.growth),
                    larger(most.ends, other.ends)};
        }
        job.maxima[blockIdx.x] = most;
    }
    if (job.second && !solved) {
        two_pass::prepare_spread<two_pass::ThirdOfBlock>(to_pivots.job);
        cooperative_groups::this_grid().sync();
        if (blockIdx.x == 0) judge(job);
        if (*const_cast<volatile unsigned long long*>(&job.outcome->handed_over) >= left_to_pivots) two_pass::solve_left(&to_pivots);
        return;
    }
    __syncthreads();
    bool last = false;
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(&job.outcome->done, 1u) == gridDim.x - 1;
        __threadfence();
    }
    if (__syncthreads_or(last)) judge(job);
#endif
}

}  // namespace trifold::cuda::windows
