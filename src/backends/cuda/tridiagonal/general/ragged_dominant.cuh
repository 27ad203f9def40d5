// SPDX-License-Identifier: BSD-3-Clause
// Runs of a ragged batch that several warps share, where rows are dominant: nothing is looked at twice, so that the next run is on its way as soon as this one is in registers.
//
// Who does what: as in ragged_runs.cuh, by the warps of a block or of a cluster. Warps tell each other once per run.
// Words per row of device memory: 4 read, 1 written, and a bit.
// Numerics: rows are looked at before they are eliminated: |a| + |c| ≤ |b|. What any elimination leaves of them is as dominant as they were, and backward stable row by row (decision 53). Numbers so large that they might become infinite are
//   not taken. A run with another row is not stored: it is listed for the kernel that checks, or, where a row is far from dominant, its systems are marked for kernels with pivots.
#pragma once

#include "backends/cuda/tridiagonal/general/ragged_runs.cuh"
#include "backends/cuda/tridiagonal/pivot_range.cuh"

namespace trifold::cuda {

template <class T, int R>
__device__ __forceinline__ void solve_dominant_runs(const RaggedRunsJob<T>& job) {
    // Of what elimination leaves of right-hand sides: x is larger at most by what the matrix makes of them.
    constexpr int largest = Magnitude<T>::one + (sizeof(T) == 8 ? 900 : 80) * Magnitude<T>::factor_of_two, invertible = Magnitude<T>::one + PivotRange<T>::wide;
    const WarpOfRuns<T, R, true> warp{job};
    const int lane = warp.lane();
    if (!warp.begin()) return;
    warp.bring_bits(0);
    unsigned shifts = __reduce_or_sync(~0u, warp.ask(0, 0, 4));
#pragma unroll 1
    for (unsigned round = 0;; ++round) {
        unsigned later_turn = 0;
        if (lane == 0 && warp.part() == 0) later_turn = next_ticket(job.tickets) + 2 * warp.teams();
        Chunk<T, R> rows;
        bool active, dominant = true, far = false;
        {
            const RowsPlace<T> home = warp.here(round);
            await_copies();
            home.arrival.wait(round & 1);
            __syncwarp();
            warp.close(round, home, RowsTile<T>(home, shifts, 0));
            active = lane * R < home.rows;
            __syncwarp();
        }
        if (active) {
            const RowsTile<T> at(warp.here(round), shifts, lane * R);
#pragma unroll
            for (int i = 0; i < R; ++i) {
                const T a = at.a[i], b = at.b[i], c = at.c[i], beside = fabs(a) + fabs(c);
                dominant = dominant && beside <= fabs(b) && magnitude(b) <= invertible;  // false for NaN
                far = far || !(beside <= 2 * fabs(b));
                rows.eliminate_to_check(i, a, b, c, at.d[i]);
            }
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the copy engine overwrites what was written here
        __syncwarp();
        const bool goes_on = warp.run(round + 1).rows >= 0;
        unsigned later_shifts = 0;
        if (goes_on) {
            warp.bring_bits(round + 1);
            later_shifts = __reduce_or_sync(~0u, warp.ask(round + 1, 0, 3));
        }
        if (active) {
            rows.reduce();
#pragma unroll
            for (int i = 0; i < R; ++i) dominant = dominant && magnitude(rows.d[i]) <= largest;
            dominant = dominant && finite_or_zero(rows.a[0] + rows.c[0]) == rows.a[0] + rows.c[0] && finite_or_zero(rows.a[R - 1] + rows.c[R - 1]) == rows.a[R - 1] + rows.c[R - 1];
        }
        if (!active || !dominant) rows.a[0] = rows.c[0] = rows.d[0] = rows.a[R - 1] = rows.c[R - 1] = rows.d[R - 1] = 0;
        const bool all_dominant = __all_sync(~0u, dominant), some_far = __any_sync(~0u, far);
        Relation<T> warp_first;
        Relation<T> warp_last = warp.joined().template reduce<true>(rows.first(), rows.last(), lane, warp_first);
        if (!all_dominant) warp_last = {some_far ? T(1) : T(0), T(0), static_cast<T>(__int_as_float(0x7fffffff))};  // who hears of it stores nothing
        const Exchange<T> exchange = warp.exchange();
        exchange.tell(round & 1, warp.part(), warp_first, warp_last, later_turn, lane);
        Relation<T> their_first, their_last;
        exchange.hear(round & 1, round >> 1 & 1, warp_again() == 0, their_first, their_last, lane);
        const bool not_dominant = !(their_last.d == their_last.d);
        const bool stored = !__any_sync(~0u, not_dominant);
        if (stored) {
            T* const memory = in_shared<T>(warp.parts() <= 16 ? job.scratch : job.couplings) + warp_again() * warp_words;
            const Around<T> around = solve_parts(their_first, their_last, warp.parts(), warp.part(), memory, lane);
            T left;
            const T mine = warp.joined().substitute(around.before, around.last, lane, left);
            T zero = 0;
            if (active) {
                const RowsTile<T> at(warp.here(round), shifts, lane * R);
#pragma unroll
                for (int i = 0; i < R; ++i) {
                    const T x = rows.x(i, left, mine);
                    zero = fused(x, T(0), zero);
                    at.d[i] = x;
                }
            }
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            const bool finite = __all_sync(~0u, zero == T(0));
            __syncwarp();
            const RowsPlace<T> home = warp.here(round);
            if (finite) store_run(job, job.operand[4] + warp.row_of(round, home), home.tile(3) + (shifts >> 24), home.rows, lane);
            else if (lane == 0) mark_lost(job, warp.run(round));
        } else {
            const bool any_far = __any_sync(~0u, not_dominant && their_last.a == T(1));
            const RaggedRun& run = warp.run(round);
            if (warp.part() == 0 && any_far) {
                for (std::int64_t k = lane; k < run.systems; k += 32) job.marks[run.system + k] = 1;
                if (lane == 0) atomicAdd(job.any, 1ull);
            } else if (warp.part() == 0 && lane == 0) {
                job.others[atomicAdd(job.other_count, 1u)] = run;
            }
        }
        __syncwarp();
        if (lane == 0) warp.bring_run(*exchange.ticket_of(round & 1), round);  // in place of the one that is done
        await_reads();
        __syncwarp();
        if (!goes_on) break;
        const unsigned last_shift = warp.ask(round + 1, 3, 4);
        shifts = later_shifts | __reduce_or_sync(~0u, last_shift);
    }
    await_copies();
    // Messages still go to blocks of the cluster.
    if (job.blocks > 1) {
        asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
        asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    }
}

template <class T, int R, int Threads, int Blocks>
__global__ void __launch_bounds__(Threads, Blocks) ragged_dominant_kernel(const __grid_constant__ RaggedRunsJob<T> job) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    after_the_kernel_before();
    solve_dominant_runs<T, R>(job);
#endif
}

}  // namespace trifold::cuda
