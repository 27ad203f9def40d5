// SPDX-License-Identifier: BSD-3-Clause
// Long systems of a ragged batch, in parts of a warp's rows: what each part has in the unknowns around it, and these unknowns. Then parts are solved as runs are (ragged_runs.cuh).
//
// Who does what: a warp has a part, eliminates it as a run, and leaves its first and last unknown in terms of those around it: 6 words. Rows are in registers then, and the next part is on its way. A warp has a system's parts after that, closes
//   each with the next one, and solves for all last unknowns.
// Words per row of device memory: 4 read here, 4 read and 1 written when parts are solved.
// Numerics: nothing of a system may be stored before all of it is known to be harmless. So rows are looked at first: |a| + |c| ≤ |b|, and |b| not too large to be inverted. What any elimination leaves of such rows is as dominant as they were, and backward
//   stable row by row (decision 53). A system with any other row, or whose unknowns are not finite, is marked, and left to kernels with pivots.
#pragma once

#include "backends/cuda/tridiagonal/general/ragged_runs.cuh"
#include "backends/cuda/tridiagonal/pivot_range.cuh"

namespace trifold::cuda {

template <class T, int R, int Threads, int Blocks>
__global__ void __launch_bounds__(Threads, Blocks) ragged_parts_kernel(const __grid_constant__ RaggedRunsJob<T> job) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    after_the_kernel_before();
    const WarpOfRuns<T, R, false> warp{job};
    const int lane = warp.lane();
    if (!warp.begin()) return;
    warp.bring_bits(0);
    unsigned shifts = __reduce_or_sync(~0u, warp.ask(0, 0, 4)), turn = warp.first_turn();
#pragma unroll 1
    for (unsigned round = 0;; ++round) {
        Chunk<T, R> rows;
        bool good = true;
        {
            const RowsPlace<T> home = warp.here(round);
            await_copies();
            home.arrival.wait(round & 1);
            __syncwarp();
            warp.close(round, home, RowsTile<T>(home, shifts, 0));
            __syncwarp();
            if (lane * R < home.rows) {
                const RowsTile<T> at(home, shifts, lane * R);
#pragma unroll
                for (int i = 0; i < R; ++i) {
                    const T a = at.a[i], b = at.b[i], c = at.c[i];
                    good = good && fabs(a) + fabs(c) <= fabs(b) && magnitude(b) <= Magnitude<T>::one + PivotRange<T>::wide;  // false for NaN
                    rows.eliminate_to_check(i, a, b, c, at.d[i]);
                }
            }
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncwarp();
        const std::int64_t system = warp.run(round).system, part = warp.run(round).part;
        const bool active = lane * R < warp.run(round).rows, goes_on = warp.run(round + 1).rows >= 0;
        if (goes_on) {
            warp.bring_bits(round + 1);
            shifts = __reduce_or_sync(~0u, warp.ask(round + 1, 0, 4));
            __syncwarp();
            if (lane == 0) warp.bring_run(turn + 2 * warp.teams(), round);  // in place of this one
        }
        turn += warp.teams();
        if (active) {
            rows.reduce();
            const T sum = fabs(rows.a[0]) + fabs(rows.c[0]) + fabs(rows.d[0]) + fabs(rows.a[R - 1]) + fabs(rows.c[R - 1]) + fabs(rows.d[R - 1]);
            good = good && finite_or_zero(sum) == sum;
        }
        if (!active || !good) rows.a[0] = rows.c[0] = rows.d[0] = rows.a[R - 1] = rows.c[R - 1] = rows.d[R - 1] = 0;
        Relation<T> first;
        const Relation<T> last = warp.joined().template reduce<true>(rows.first(), rows.last(), lane, first);
        const bool all = __all_sync(~0u, good);
        if (lane == 0) {
            T* const to = job.relations + 6 * part;
            to[0] = first.a, to[1] = first.c, to[2] = first.d, to[3] = last.a, to[4] = last.c, to[5] = last.d;
            if (!all) job.marks[system] = 1, atomicAdd(job.any, 1ull);
        }
        __syncwarp();
        if (!goes_on) break;
    }
    await_copies();
#endif
}

inline constexpr int parts_threads = 128;

/// The last unknowns of all parts of a system, at most 32 R, and what is around each, by a warp.
template <class T, int R>
__device__ __noinline__ void find_around(const RaggedRunsJob<T>& job, const RaggedParts& system, T* memory, int lane) {
    const T* const relations = job.relations + 6 * static_cast<std::int64_t>(system.first);
    const auto first_of = [&](int p) { return p < system.count ? Relation<T>{relations[6 * p], relations[6 * p + 1], relations[6 * p + 2]} : Relation<T>{T(0), T(0), T(0)}; };
    const auto last_of = [&](int p) { return p < system.count ? Relation<T>{relations[6 * p + 3], relations[6 * p + 4], relations[6 * p + 5]} : Relation<T>{T(0), T(0), T(0)}; };
    Chunk<T, R> rows;
#pragma unroll
    for (int i = 0; i < R; ++i) rows.eliminate(i, close(last_of(lane * R + i), first_of(lane * R + i + 1)));
    rows.reduce();
    T left;
    const T mine = WarpRows<T>(memory).template solve<false>(rows.first(), rows.last(), lane, left);
    T* const found = job.found + system.first;
    bool good = job.marks[system.system] == 0;
#pragma unroll
    for (int i = 0; i < R; ++i) {
        const T x = rows.x(i, left, mine);
        good = good && finite_or_zero(x) == x;
        if (lane * R + i < system.count) found[lane * R + i] = x;
    }
    good = __all_sync(~0u, good);
    if (!good && lane == 0 && job.marks[system.system] == 0) job.marks[system.system] = 1, atomicAdd(job.any, 1ull);
    __syncwarp();
    for (int p = lane; p < system.count; p += 32) {
        const Relation<T> next = first_of(p + 1);
        const T own = found[p], beyond = p + 1 < system.count ? found[p + 1] : T(0);
        T* const to = job.around + 3 * (static_cast<std::int64_t>(system.first) + p);
        to[0] = p > 0 ? found[p - 1] : T(0), to[1] = good ? own : static_cast<T>(__int_as_float(0x7fffffff)), to[2] = fused(-next.c, beyond, fused(-next.a, own, next.d));
    }
    __syncwarp();
}

template <class T>
__global__ void __launch_bounds__(parts_threads) ragged_around_kernel(const __grid_constant__ RaggedRunsJob<T> job) {
    constexpr int few = 3, many = 17;  // parts of a lane: 32 times as many are more than a system has
    __shared__ T memory[parts_threads / 32][WarpRows<T>::words];
    const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) / 32;
    after_the_kernel_before();
    const unsigned count = *job.cut_count, warps = gridDim.x * (parts_threads / 32);
    for (unsigned s = blockIdx.x * (parts_threads / 32) + warp; s < count; s += warps) {
        const RaggedParts system = job.cut_systems[s];
        if (system.count <= 32 * few) find_around<T, few>(job, system, memory[warp], lane);
        else find_around<T, many>(job, system, memory[warp], lane);
    }
}

}  // namespace trifold::cuda
