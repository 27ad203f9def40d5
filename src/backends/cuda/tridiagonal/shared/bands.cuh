// SPDX-License-Identifier: BSD-3-Clause
// One matrix, many columns side by side, of which a cluster's blocks have bands of the rows:   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i],   a, b, c the same in every column.
//
// Shapes and strides: job.hpp; rhs and x have stride 1 along a line and lie apart. Nothing else is overwritten but the marks.
// Who does what: a cluster has `across` columns, each of its blocks a band of their rows, `segments` × R of them; a thread has R consecutive rows of one column in registers. What a block
//   has of the matrix is eliminated once (segment.cuh, band_join.cuh), and what joins the blocks in every block (join.cuh). Of a right-hand side every block sends two numbers per column to
//   all blocks of the cluster (st.async), once, or to the one that joins this column, which tells all (band_gather.cuh); nobody waits for a barrier of the cluster. While a set is solved the next one is on its way into shared memory (column_sets.cuh).
//   Copies: lines and tensors, rows begin anywhere, and x leaves through shared memory (band_store.cuh); vectors, rows in whole sectors, and x leaves from registers or, as the set came, by the copy
//   engine (columns_ring.cuh).
// Words per row: 1 read, 1 written. A piece of a row that begins anywhere costs parts of sectors at both ends, which memory takes slowly: a block alone has room for 128 bytes of each of
//   1000 rows, a cluster of eight for a kilobyte; whole sectors want 256 bytes, for which two to four blocks do.
// Numerics: segment.cuh. Where the matrix is not safe every system is marked and nothing is stored. What is not finite is found at the ends of a thread's rows; its column is marked,
//   and what other threads or blocks have stored of it is overwritten by the rescue.
#pragma once

#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/shared/band_block.cuh"
#include "backends/cuda/tridiagonal/shared/band_gather.cuh"
#include "backends/cuda/tridiagonal/shared/band_store.cuh"
#include "backends/cuda/tridiagonal/shared/column_tensors.cuh"
#include "backends/cuda/tridiagonal/shared/columns_ring.cuh"
#include "backends/cuda/tridiagonal/shared/segment_rows.cuh"

namespace trifold::cuda {

/// Whether all warps ask for pieces: 59 to 67 % of the roof at 1000 rows in double precision; in single 2 points less. (Measured.)
template <class T>
inline constexpr bool bands_deal = sizeof(T) == 8;

/// A mark among others that may change at the same time, when all blocks have cleared theirs; counted where it was not there.
template <class T>
__device__ __forceinline__ void mark_system(const SharedJob<T>& job, unsigned system) {
    unsigned cleared;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(cleared) : "l"(job.cleared) : "memory");
    while (cleared < gridDim.x);
    const unsigned shift = system % 4 * 8;
    if (!(atomicOr(reinterpret_cast<unsigned*>(job.marks + system / 4 * 4), 1u << shift) >> shift & 1)) atomicAdd(job.handed_over, 1ull);
}

/// A number from which places are found anew in every turn: registers are full, and what would be brought back from local memory waits behind all that was stored (with 8 bytes of it 59 instead of 81 % of
/// the roof at 500 rows in double precision).
__device__ __forceinline__ int anew(int number) {
    asm volatile("" : "+r"(number));
    return number;
}

template <ColumnCopies Copies>
using BandMaps = std::conditional_t<Copies == ColumnCopies::tensors, ShiftedMaps, ColumnMaps>;

/// Stages: 1, or `band_stages`: then sets come and go by the copy engine as tensors (columns_ring.cuh), and a set has as many rows of a block as it has threads for; `maps` is for these and for `tensors`.
/// Gathered: what joins the blocks goes by way of band_gather.cuh.
template <class T, int R, int Threads, ColumnCopies Copies, int Stages, bool Gathered = false>
__global__ void __launch_bounds__(Threads, 512 / Threads) solve_shared_bands(const __grid_constant__ SharedJob<T> job, const __grid_constant__ BandMaps<Copies> maps) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    using Layout = BandsLayout<T, R>;
    extern __shared__ __align__(128) int4 shared[];
    __shared__ unsigned long long barriers[3 + Stages];  // pairs (gathered: results) of even and of odd turns, sets, gathered pairs
    __shared__ unsigned drawn[2];
    constexpr bool whole = Copies == ColumnCopies::vectors;  // pieces are whole sectors, and x leaves from registers
    T* const memory = reinterpret_cast<T*>(shared);
    job.opening.open();
    if (job.wanted) {
        await_the_kernel_before();
        if (!*const_cast<const volatile unsigned long long*>(job.wanted)) return;
    }
    const int thread = static_cast<int>(threadIdx.x), threads = Stages > 1 ? static_cast<int>(blockDim.x) : Threads;
    const int across = job.across, segments = job.segments, column = thread & (across - 1), segment = thread / across;
    const int blocks = job.cluster, rank = static_cast<int>(blockIdx.x) % blocks, first_row = rank * segments * R;
    const unsigned team = blockIdx.x / static_cast<unsigned>(blocks), teams = gridDim.x / static_cast<unsigned>(blocks);
    constexpr bool ring = Stages > 1;
    const bool mover = ring && thread + 32 == threads;  // not of a warp that joins
    const Layout layout(segments, across, blocks, !whole, Stages, Gathered ? job.joined : 0);
    if (thread < 2) Arrival{shared_address(barriers + thread)}.prepare(1);
    if (Gathered && thread == 0) Arrival{shared_address(barriers + 2 + Stages)}.prepare(1);
    const int band_rows = min(max(job.rows - first_row, 0), segments * R);
    auto sets = [&] {
        if constexpr (Copies == ColumnCopies::tensors) return ShiftedSets<T, R>(job, maps, memory, shared_address(barriers + 2), first_row, band_rows);
        else return ColumnSets<T, R, Copies>(job, memory, shared_address(barriers + 2), first_row, band_rows, bands_deal<T>);
    }();
    [[maybe_unused]] const auto set_at = [&](auto tile, int stage) { return RingSet<T>(job, maps, tile, memory + stage * layout.stage, shared_address(barriers + 2 + stage), first_row, layout.stage); };
    if constexpr (!ring) {
        sets.load(sets.source(team));
    } else if (mover) {
        for (int s = 0; s < Stages; ++s) Arrival{shared_address(barriers + 2 + s)}.prepare(1);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        set_at(team, 0).load(), set_at(team + teams, 1).load();
    }

    T *const last = memory + layout.last + column, *const first = memory + layout.first + column;
    const BandBlock<T, R> block(memory, layout, rank, blocks, segments, across);
    const bool safe = block.eliminate(job, first_row, threads);
    await_the_kernel_before();
    if (thread == 0) job.opening.enter();
    if (!__syncthreads_and(safe)) {
        if constexpr (ring) set_at(team, 0).wait(0), set_at(team + teams, 1).wait(0);
        else if constexpr (Copies == ColumnCopies::tensors) sets.abandon(team);
        else sets.abandon();
        mark_all(job);
        if (blocks > 1) meet_in_cluster();
        return;
    }
    for (unsigned k = blockIdx.x * static_cast<unsigned>(threads) + static_cast<unsigned>(thread); k < job.systems; k += gridDim.x * static_cast<unsigned>(threads)) job.marks[k] = 0;
    __threadfence();
    if (blocks > 1) meet_in_cluster();
    else __syncthreads();
    if (thread == 0) atomicAdd(job.cleared, 1u);

    const T* const own = block.factors + segment * Layout::segment;
    const BandStore<T, R> out(job, memory + layout.stage, first_row);
    T* const pairs = memory + layout.pairs;
    [[maybe_unused]] const BandGather<T> gather(pairs, shared_address(barriers + 2 + Stages), rank, blocks, across, job.joined);
    constexpr bool draws = whole || Copies == ColumnCopies::tensors;
    // What a cluster's first block has drawn goes to the others with the pairs of the turn behind: a draw is slow, and all of them wait for pairs.
    unsigned tile = team, after = team + teams, third = after + teams, later = third + teams;
    if (draws && thread == 0 && rank == 0) later = 3 * teams + atomicAdd(job.tickets, 1u);
    [[maybe_unused]] int stage = 0;
    [[maybe_unused]] unsigned phase = 0;
    for (unsigned turn = 0; tile < job.tiles; ++turn) {
        T y[R];
        const unsigned told = later;
        if (draws && thread == 0 && rank == 0) later = 3 * teams + atomicAdd(job.tickets, 1u);
        [[maybe_unused]] const auto next = sets.source(after);
        const unsigned barrier = shared_address(barriers + (turn & 1));
        const T* const arrived = Gathered ? gather.results + 2 * column : pairs + (turn & 1) * 2 * blocks * across + 2 * column;
        if (thread == 0 && blocks > 1) {
            Arrival{barrier}.expect(static_cast<unsigned>(2 * (Gathered ? 1 : blocks) * across) * static_cast<unsigned>(sizeof(T)) + (draws ? 4 : 0));
            if (Gathered) Arrival{gather.news}.expect(gather.bytes());
        }
        [[maybe_unused]] T* const place = memory + stage * layout.stage + segment * R * across + column;
        if constexpr (ring) {
            set_at(tile, stage).wait(phase);
#pragma unroll
            for (int i = 0; i < R; ++i) y[i] = place[i * across];
        } else {
            sets.take(tile, turn & 1, y);
            sets.load(next);
            if (!whole) sets.touch(after);
        }

        eliminate_rows(own, y);
        const T z = first_of_rows(own, y);
        if (whole) {
            const int at = anew(thread);
            memory[layout.last + at] = y[R - 1], memory[layout.first + at] = z;
        } else {
            last[segment * across] = y[R - 1], first[segment * across] = z;
        }
        __syncthreads();
        if constexpr (ring)
            if (mover) await_stored_places(), set_at(third, stage ? stage - 1 : Stages - 1).load();  // what has left in the turn before makes room
        if (segment == 0) {
            T head, before = 0, x_band;
            [[maybe_unused]] typename BandBlock<T, R>::Few ends;  // of at most eight segments
            const T g = [&] {
                if constexpr (ring) return block.reduce(last, first, ends, head);
                else return block.reduce(last, first, head);
            }();
            if (blocks > 1) {
                if constexpr (Gathered) gather.hand_in(anew(column), g, head);
                else block.tell(arrived, barrier, g, head);
                if constexpr (draws) {
                    const unsigned tell = __shfl_sync(~0u, told, 0);
                    if (rank == 0 && thread < blocks) send(in_block(shared_address(drawn + (turn & 1)), thread), tell, in_block(barrier, thread));
                }
                if constexpr (Gathered) gather.solve(block.join, turn & 1, barrier);
                Arrival{barrier}.wait_cluster(turn >> 1 & 1);
                if constexpr (Gathered) x_band = arrived[0], before = arrived[1];
                else x_band = block.join_all(arrived, before);
            } else {
                x_band = g * block.join[0].inverse;
            }
            if constexpr (ring) block.substitute(last, first, ends, x_band, before);
            else block.substitute(last, first, x_band, before);
        }
        __syncthreads();
        const int at = Gathered || whole ? anew(thread) : thread;
        const T* const lasts = memory + layout.last;
        const T x = lasts[at], before = segment ? lasts[at - across] : first[0];
        y[R - 1] = x;
        substitute_rows(own, before, y);

        const ColumnSet set = set_of(job, ring ? job.order(tile) : tile);
        // What is not finite has reached the segment's first row, or its last.
        const bool bad = column < set.columns && !(y[0] * T(0) + x * T(0) == T(0));
        bool from_registers = true;
        if constexpr (ring) {
#pragma unroll
            for (int i = 0; i < R; ++i) place[i * across] = y[i];
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the copy engine will read x
            from_registers = __syncthreads_or(bad);
            if (mover && !from_registers) set_at(tile, stage).store();
            if (++stage == Stages) stage = 0, phase ^= 1;
        } else if constexpr (whole) {
            __syncthreads();
        }
        if constexpr (whole) {
            if (from_registers && column < set.columns) {
                if (bad) mark_system(job, set.system + static_cast<unsigned>(column));
                else store_column<Copies, false>(job, set, y, first_row);
            }
        } else if (!__syncthreads_or(bad)) {
            out.all(set, y);
        } else if (column < set.columns) {
            if (!bad) out.one(set, y);
            else if (column < set.own) mark_system(job, set.system + static_cast<unsigned>(column));
        }
        tile = after, after = third, third = draws ? drawn[turn & 1] : third + teams;
    }
    if (mover) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    if (blocks > 1) meet_in_cluster();
#endif
}

}  // namespace trifold::cuda
