// SPDX-License-Identifier: BSD-3-Clause
// A batch whose rows lie side by side, on chip, a warp per run of rows:   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i]
//
// Shapes and strides: tile_job.hpp. x may be rhs; nothing else is overwritten.
// Who does what: a warp has up to 32 R rows in shared memory (a, b, c, d): several short systems one after the other, one system, or
//   a part of one. Lane l takes rows l R … in registers and reduces them (thread/chunk.cuh), the warp joins its lanes
//   (warp/lanes.cuh). Parts of a system tell each other how their first and last unknowns depend on their neighbours'
//   (exchange.cuh), and each solves for all of these. Lanes substitute and *check* their rows against what is still in shared memory,
//   put x in place of d, and the warp stores it. Warps stay and draw tiles: a, b, c of the next one are asked for as soon as the
//   check is done, d when x has left. A tile takes a warp some 8000 cycles (49 rows a lane, single precision), half of which it waits for
//   memory; what nothing hides are the first request, the last tile, and first tiles that come together.
// Words per row of device memory: 4 read, 1 written; what is the same in all systems stays in shared memory and is not read again. R is odd: lanes read from different banks.
// Numerics: nothing is pivoted. Per lane, and per system within it, max|rhs - A x| ≤ accept × max|diag| × max|x| (neighbours' x too),
//   else the whole system is marked and not stored, nor added (Adds): what is stored has a backward error that was seen, whatever the matrix. Marked
//   systems are for a pivoted kernel. A neighbour that shares a lane with a system that is not finite may be marked too.
#pragma once

#include "backends/cuda/tridiagonal/block/one_launch.cuh"
#include "backends/cuda/tridiagonal/block/exchange.cuh"
#include "backends/cuda/tridiagonal/block/rows_check.cuh"
#include "backends/cuda/tridiagonal/block/rows_copy.cuh"
#include "backends/cuda/tridiagonal/block/rows_layout.hpp"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/warp/lanes.cuh"

namespace trifold::cuda {

static_assert(warp_words == WarpRows<float>::words && quad_words == Quads<float, 16>::words);

/// What elimination must not see: lower of first rows, upper of last rows, and rows that do not exist, which become x = 0. Their diagonal is less than any that matters: rows of the same lane are
/// judged by the largest one of all.
template <int R, bool Couple, class T>
__device__ __forceinline__ void close_rows(const TileJob<T>& job, int columns, const RowsPlace<T>& home, const RowsTile<T>& at, int lane) {
    constexpr T least = sizeof(T) == 8 ? T(0x1p-1000) : T(0x1p-120);  // normal, and so is its reciprocal
    const auto nothing = [&](int row) { at.a[row] = 0, at.b[row] = least, at.c[row] = 0, at.d[row] = 0; };
    const int end = (columns - 1) * job.pitch + home.rows;
    if (Couple || columns == 1) {
        if (lane == 0 && home.first_row == 0) at.a[0] = 0;
        if (lane == 1 && home.first_row + home.rows == job.rows && home.rows > 0) at.c[home.rows - 1] = 0;
    } else {
#pragma unroll 1
        for (int k = lane; k < columns; k += 32) {
            const int first = k * job.pitch;
            at.a[first] = 0, at.c[first + home.rows - 1] = 0;
            if (k + 1 < columns)
#pragma unroll 1
                for (int row = home.rows; row < job.pitch; ++row) nothing(first + row);
        }
    }
#pragma unroll 1
    for (int row = end + lane; row < (end + R - 1) / R * R; row += 32) nothing(row);
}

/// The unknowns around part `me` of `parts`: its last one, the one before its first, the one after its last. Lane l has the relations
/// of part l, or zeros.
template <class T>
struct Around {
    T before, last, after;
};

/// Four rows, of lanes 0 … 3, with nothing before and after them: all x in every lane.
template <class T>
__device__ __forceinline__ void solve_four(const Relation<T>& own, T (&x)[4]) {
    T c[4];
#pragma unroll
    for (int p = 0; p < 4; ++p) {
        const Relation<T> row = of_lane(own, p);
        const T k = p ? finite_or_zero(reciprocal(fused(-row.a, c[p - 1], T(1)))) : T(1);
        x[p] = p ? fused(-row.a, x[p - 1], row.d) * k : row.d;
        c[p] = row.c * k;
    }
#pragma unroll
    for (int p = 2; p >= 0; --p) x[p] = fused(-c[p], x[p + 1], x[p]);
}

template <class T>
__device__ __forceinline__ Around<T> solve_parts(const Relation<T>& first, const Relation<T>& last, int parts, int me, T* memory, int lane) {
    T x;  // of part `lane`
    if (parts <= 16) {
        const Relation<T> closed = join(first, last, lane, 32);
        T four[4];
        if (parts <= 4) {
            solve_four(closed, four);
            x = lane == 0 ? four[0] : lane == 1 ? four[1] : lane == 2 ? four[2] : four[3];
        } else {
            const Quads<T, 16> quads{memory};
            const T aside[2] = {memory[lane], lane < quad_words - 32 ? memory[lane + 32] : T(0)};
            __syncwarp();
            Relation<T> first_quad;
            const Relation<T> quad = quads.reduce(closed, lane, first_quad);
            solve_four(join(first_quad, quad, lane, 4), four);
            x = quads.substitute(T(0), lane == 0 ? four[0] : lane == 1 ? four[1] : lane == 2 ? four[2] : four[3], lane);
            __syncwarp();
            memory[lane] = aside[0];
            if (lane < quad_words - 32) memory[lane + 32] = aside[1];
            __syncwarp();
        }
    } else {
        T left;
        x = WarpRows<T>(memory).template solve<false>(first, last, lane, left);
        __syncwarp();
    }
    const int next = me + 1 < 32 ? me + 1 : 31;
    Around<T> of;
    const T previous = __shfl_sync(~0u, x, me ? me - 1 : 0), next_last = __shfl_sync(~0u, x, next);
    const Relation<T> beyond = of_lane(first, next);
    of.before = me ? previous : T(0);
    of.last = __shfl_sync(~0u, x, me);
    of.after = me + 1 < parts ? fused(-beyond.c, next_last, fused(-beyond.a, of.last, beyond.d)) : T(0);
    return of;
}

template <class T, int R, bool Couple, bool Adds = false>
__device__ __forceinline__ void solve_tiles(const TileJob<T>& job) {
    constexpr Adding how = adding<T>(Adds, Couple);
    job.opening.open();
    const int lane = static_cast<int>(threadIdx.x) & 31, warps = static_cast<int>(blockDim.x) >> 5;
    const int blocks = Couple ? job.blocks : 1, parts = warps * blocks;
    const RowsMemory layout(static_cast<int>(sizeof(T)), warps, job.tile_elements, job.last_elements, job.flags, Couple, parts);
    const Exchange<T> exchange{shared_address(in_shared<char>(8 * warps)), layout.exchange, parts, blocks};
    // Rather computed again where it is needed than kept: registers are for the rows.
    const auto here = [&] {
        const int warp = warp_again();
        RowsPlace<T> home;
        home.warp = warp;
        home.part = Couple ? (blocks > 1 ? static_cast<int>(blockIdx.x) % blocks * warps : 0) + warp : 0;
        home.tiles = layout.tiles + warp * 4 * job.tile_elements * static_cast<int>(sizeof(T));
        home.apart = Couple && warp == warps - 1 ? job.last_elements : job.tile_elements;
        home.bad = Couple ? -1 : layout.bad + warp * job.flags;
        home.arrival = {shared_address(in_shared<char>(8 * warp))};
        home.first_row = Couple ? min(home.part * job.block_rows, job.rows) : 0;
        home.rows = Couple ? min(job.block_rows, job.rows - home.first_row) : job.rows;
        return home;
    };

    // Everybody's first tiles are given, the next ones are drawn: what is under way stays together in memory. A single counter bears some
    // 300 draws in a microsecond, so that small tiles are drawn several at a time.
    const unsigned teams = Couple ? gridDim.x / static_cast<unsigned>(blocks) : gridDim.x * static_cast<unsigned>(warps);
    unsigned turn = Couple ? blockIdx.x / static_cast<unsigned>(blocks) : (blockIdx.x * static_cast<unsigned>(warps) + threadIdx.x / 32) * job.draw;
    const int ahead = (warps + 1) / 2;  // warps of a block that ask for their first tiles at once
    if constexpr (!Couple) {
        if (threadIdx.x < warps) Arrival{shared_address(in_shared<char>(8 * (warps + static_cast<int>(threadIdx.x))))}.prepare(1);
        __syncthreads();
    }
    if (turn >= job.tiles) return;  // not coupled

    if (lane == 0) here().arrival.prepare(4);
    if constexpr (Couple) {
        if (threadIdx.x == 0) exchange.prepare(warps);
        if (blocks > 1) {
            asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
            asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
        } else {
            __syncthreads();
        }
    } else {
        for (int k = lane; k < job.flags; k += 32) *in_shared<char>(here().bad + k) = 0;
        __syncwarp();
    }
    // Not all at once: tiles that come together are solved together, while the memory waits.
    const auto may_ask = [&](int warp) { return Arrival{shared_address(in_shared<char>(8 * (warps + warp)))}; };
    const auto await_opening = [&] {
        await_the_kernel_before();
        if (lane == 0 && (!Couple || here().part == 0)) job.opening.await();
        __syncwarp();
    };
    const bool follows = !Couple && warp_again() >= ahead;
    if (follows) {
        await_opening();
        may_ask(warp_again()).wait_together(0);
    }
    unsigned shifts = ask_any(job, here(), job.tile_of(turn), lane);
    if (!follows) await_opening();
    if (!Couple && warp_again() + ahead < warps) {
        here().arrival.wait_together(0);
        if (lane == 0) may_ask(warp_again() + ahead).arrive();
    }
#pragma unroll 1
    for (unsigned round = 0;; ++round) {
        const unsigned tile = job.tile_of(turn);
        const int columns = Couple ? 1 : job.within(tile) ? job.groups : columns_of(job, tile);
        Chunk<T, R> rows;
        bool active, broken = false;  // broken: its own rows will tell, others must not suffer
        {
            const RowsPlace<T> home = here();
            await_copies();
            home.arrival.wait(round & 1);
            __syncwarp();
            const RowsTile<T> at(home, shifts, 0);
            close_rows<R, Couple>(job, columns, home, at, lane);
            __syncwarp();
            active = lane * R < (columns - 1) * job.pitch + home.rows;
        }
        if (active) {
            const RowsTile<T> at(here(), shifts, lane * R);
#pragma unroll
            for (int i = 0; i < R; ++i) rows.eliminate_to_check(i, at.a[i], at.b[i], at.c[i], at.d[i]);
            rows.reduce();
            const T sum = fabs(rows.a[0]) + fabs(rows.c[0]) + fabs(rows.d[0]) + fabs(rows.a[R - 1]) + fabs(rows.c[R - 1]) + fabs(rows.d[R - 1]);
            broken = finite_or_zero(sum) != sum;
        }
        if (!active || broken) rows.a[0] = rows.c[0] = rows.d[0] = rows.a[R - 1] = rows.c[R - 1] = rows.d[R - 1] = 0;
        unsigned next_turn = 0;
        if (Couple && here().part == 0 && lane == 0) next_turn = atomicAdd(job.tickets, 1u) + teams;
        const WarpRows<T> joined(in_shared<T>(layout.scratch) + warp_again() * warp_words);
        Relation<T> warp_first;
        const Relation<T> warp_last = joined.template reduce<Couple>(rows.first(), rows.last(), lane, warp_first);

        Around<T> around{T(0), warp_last.d, T(0)};
        if constexpr (Couple) {
            const int warp = here().warp, me = here().part;
            exchange.tell(round & 1, me, warp_first, warp_last, next_turn, lane);
            Relation<T> their_first, their_last;
            next_turn = exchange.hear(round & 1, round >> 1 & 1, warp == 0, their_first, their_last, lane);
            T* const couplings = parts <= 16 ? in_shared<T>(layout.scratch) + warp * warp_words : in_shared<T>(layout.couplings) + warp * warp_words;
            around = solve_parts(their_first, their_last, parts, me, couplings, lane);
        }
        T left;
        const T mine = joined.substitute(around.before, around.last, lane, left);
        // The unknown after the lane's last one.
        const Relation<T> next{__shfl_down_sync(~0u, rows.a[0], 1), __shfl_down_sync(~0u, rows.c[0], 1), __shfl_down_sync(~0u, rows.d[0], 1)};
        const T x_next = __shfl_down_sync(~0u, mine, 1);
        const T after = lane < 31 ? fused(-next.c, x_next, fused(-next.a, mine, next.d)) : around.after;

        const int start = lane * R;
        RowBits<R> ends = 0, all_ends = 0;
        if (!Couple && (job.groups > 1 || job.pitch != job.rows)) {
            ends = ends_of_systems<R>(start, job.pitch, job.rows, job.long_inverse);
            all_ends = of_all_lanes(ends);
        }
        const RowsPlace<T> home = here();
        RowsVerdict<R> verdict;
        if (active) {
            const RowsTile<T> at(home, shifts, start);
            if (all_ends == 0) verdict = check_rows<false>(rows, at, left, mine, after, job.accept, ends, all_ends, broken);
            else verdict = check_rows<true>(rows, at, left, mine, after, job.accept, ends, all_ends, broken);
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the copy engine will overwrite what was written here
        bool all = !__any_sync(~0u, verdict.failed());
        __syncwarp();
        if constexpr (!Couple) {
            next_turn = turn + 1;
            if ((next_turn & (job.draw - 1)) == 0) {
                if (lane == 0) next_turn = (atomicAdd(job.tickets, 1u) + teams) * job.draw;
                next_turn = __shfl_sync(~0u, next_turn, 0);
            }
        }
        const unsigned next_tile = job.tile_of(next_turn);
        const bool quick = job.within_after(tile, next_tile);
        if (Adds && lane == 4 && quick) prefetch_within<how>(job, home, next_tile);
        unsigned later_shifts = 0;
        if constexpr (Couple) {
            exchange.judge(round & 1, home.part, all, lane);
            if (quick && lane < 3) later_shifts = ask_within(job, home, next_tile, lane, shifts);
            all = exchange.agree(round & 1, round >> 1 & 1, home.warp == 0, lane);
        } else if (!all) {
            verdict.each([&](int i) { *in_shared<char>(home.bad + min((start + i) / job.pitch, columns - 1)) = 1; });
            __syncwarp();
        }
        if (!(all && job.within(tile) && job.runs_stored && store_within<how>(job, home, tile, static_cast<int>(shifts >> 24), lane)))
            finish_any<how>(job, home, tile, shifts >> 24, all, lane);
        else if (!Couple && job.tile_marks) {
            if (lane == 0) job.tile_marks[tile] = 0;
        } else if (!Couple || home.part == 0)
#pragma unroll 1
            for (int k = lane; k < columns; k += 32) job.marks[static_cast<std::int64_t>(tile) * (Couple ? 1 : job.groups) + k] = 0;
        turn = next_turn;
        __syncwarp();
        if (!Couple && quick && lane < 3) later_shifts = ask_within(job, home, next_tile, lane, shifts);
        await_reads();
        __syncwarp();
        if (turn >= job.tiles) break;
        if (quick) {
            if (lane == 3) later_shifts = ask_within(job, home, next_tile, lane, shifts);
            shifts = __reduce_or_sync(~0u, later_shifts);
        } else {
            shifts = load_any(job, here(), next_tile, lane);
        }
    }
    // Every whole draw was followed by one more: so many have been asked for when nobody looks for tiles any more.
    if (lane == 0 && (!Couple || here().part == 0)) job.opening.close(turn == (job.draws - 1 + teams) * job.draw);
    // Messages still go to blocks of the cluster.
    if (Couple && blocks > 1) {
        asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
        asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    }
}

template <class T, int R, bool Couple, int Threads, int Blocks, bool Adds = false>
__global__ void __launch_bounds__(Threads, Blocks) solve_rows(const __grid_constant__ TileJob<T> job) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // batch_refuses keeps others away
    if (job.wanted) {
        after_the_kernel_before();
        if (*job.wanted == 0) return;
    }
    solve_tiles<T, R, Couple, Adds>(job);
#endif
}

/// One tile, by one block or cluster. The barriers that begin coupled tiles, and the one warp of others, put the reset first.
template <class T, int R, bool Couple, int Threads>
__global__ void __launch_bounds__(Threads, 1) solve_rows_in_one_launch(const __grid_constant__ TileJob<T> job, const __grid_constant__ OneLaunch<T> once) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    if (blockIdx.x == 0) once.reset();
    __syncthreads();
    solve_tiles<T, R, Couple>(job);
    if (blockIdx.x == 0) once.rescue(*in_shared<BlockPivoting<T>>(0));
#endif
}

}  // namespace trifold::cuda
