// SPDX-License-Identifier: BSD-3-Clause
// One matrix, many columns side by side, of which a cluster's blocks have bands of the rows:   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i],   a, b, c the same in every column.
//
// Shapes and strides: job.hpp; rhs and x have stride 1 along a line and lie apart. Nothing else is overwritten but the marks.
// Who does what: a cluster has `across` columns, each of its blocks a band of their rows, `segments` × R of them; a thread has R consecutive rows of one column in registers. What a block
//   has of the matrix is eliminated once (segment.cuh, band_join.cuh), and what joins the blocks in every block (join.cuh). Of a right-hand side every block sends two numbers per column to
//   all blocks of the cluster (st.async), once; nobody waits for a barrier of the cluster. While a set is solved the next one is on its way into shared memory (column_sets.cuh).
//   Copies: lines, rows begin anywhere, and x leaves through shared memory (band_store.cuh); vectors, rows in whole sectors, and x leaves from registers.
// Words per row: 1 read, 1 written. A piece of a row that begins anywhere costs parts of sectors at both ends, which memory takes slowly: a block alone has room for 128 bytes of each of
//   1000 rows, a cluster of eight for a kilobyte; whole sectors want 256 bytes, for which two blocks do.
// Numerics: segment.cuh. Where the matrix is not safe every system is marked and nothing is stored. What is not finite is found at the ends of a thread's rows; its column is marked,
//   and what other threads or blocks have stored of it is overwritten by the rescue.
#pragma once

#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/shared/band_join.cuh"
#include "backends/cuda/tridiagonal/shared/band_store.cuh"
#include "backends/cuda/tridiagonal/shared/columns.cuh"
#include "backends/cuda/tridiagonal/shared/segment_rows.cuh"

namespace trifold::cuda {

inline constexpr int most_bands = 8;

/// Whether all warps ask for pieces: 59 to 67 % of the roof at 1000 rows in double precision; in single 2 points less. (Measured.)
template <class T>
inline constexpr bool bands_deal = sizeof(T) == 8;

/// Shared memory of a block, in elements from its start; the set comes first.
template <class T, int R>
struct BandsLayout {
    static constexpr int vector = 16 / static_cast<int>(sizeof(T)), line = 128 / static_cast<int>(sizeof(T));
    static constexpr int segment = 4 * R + vector;
    int stage, pairs, factors, ends, links, bands, join, last, first, flags, total;

    __host__ __device__ BandsLayout(int segments, int across, int blocks, bool staged) {
        stage = segments * R * (across + (staged ? line : 0));
        pairs = stage + (staged ? 2 * segments * BandStore<T, R>::chunk * (across + line) : 0);
        factors = pairs + (blocks > 1 ? 4 * blocks * across : 0);
        ends = factors + segments * segment;
        links = ends + segments * 8;
        bands = links + segments * 8;
        join = bands + (most_bands + 1) * 8;
        last = join + most_bands * 4;
        first = last + segments * across;
        flags = first + segments * across;
        total = flags + 16;
    }
};

/// A mark among others that may change at the same time, when all blocks have cleared theirs; counted where it was not there.
template <class T>
__device__ __forceinline__ void mark_system(const SharedJob<T>& job, unsigned system) {
    unsigned cleared;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(cleared) : "l"(job.cleared) : "memory");
    while (cleared < gridDim.x);
    const unsigned shift = system % 4 * 8;
    if (!(atomicOr(reinterpret_cast<unsigned*>(job.marks + system / 4 * 4), 1u << shift) >> shift & 1)) atomicAdd(job.handed_over, 1ull);
}

__device__ __forceinline__ void meet_in_cluster() { asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory"); }

template <class T, int R, int Threads, ColumnCopies Copies>
__global__ void __launch_bounds__(Threads, 1) solve_shared_bands(const __grid_constant__ SharedJob<T> job) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    using Layout = BandsLayout<T, R>;
    extern __shared__ __align__(128) int4 shared[];
    __shared__ unsigned long long barriers[3];  // the next set, pairs of even and of odd turns
    __shared__ unsigned drawn[2];
    constexpr bool whole = Copies == ColumnCopies::vectors;  // pieces are whole sectors, and x leaves from registers
    T* const memory = reinterpret_cast<T*>(shared);
    job.opening.open();
    const int thread = static_cast<int>(threadIdx.x);
    const int across = job.across, segments = job.segments, column = thread & (across - 1), segment = thread / across;
    const int blocks = job.cluster, rank = static_cast<int>(blockIdx.x) % blocks, first_row = rank * segments * R;
    const unsigned team = blockIdx.x / static_cast<unsigned>(blocks), teams = gridDim.x / static_cast<unsigned>(blocks);
    const Layout layout(segments, across, blocks, !whole);
    if (thread < 2) Arrival{shared_address(barriers + 1 + thread)}.prepare(1);
    ColumnSets<T, R, Copies> sets(job, memory, shared_address(barriers), first_row, min(max(job.rows - first_row, 0), segments * R), bands_deal<T>);
    sets.load(sets.source(team));

    // The matrix.
    T* const factors = memory + layout.factors;
    auto* const ends = reinterpret_cast<SegmentEnds<T>*>(memory + layout.ends);
    auto* const links = reinterpret_cast<BandLink<T>*>(memory + layout.links);
    auto* const bands = reinterpret_cast<SegmentEnds<T>*>(memory + layout.bands);  // all blocks', then this one's
    auto* const join = reinterpret_cast<Join<T>*>(memory + layout.join);
    T *const last = memory + layout.last + column, *const first = memory + layout.first + column;
    volatile unsigned* const fine = reinterpret_cast<unsigned*>(memory + layout.flags);
    for (int r = thread; r < segments * R; r += Threads) {
        T* const at = factors + r / R * Layout::segment + r % R;
        const int row = first_row + r;
        const bool real = row < job.rows;
        at[0] = real ? job.diag[row] : T(1);
        at[R] = real && row ? job.lower[row] : T(0);
        at[2 * R] = real && row + 1 < job.rows ? job.upper[row] : T(0);
    }
    __syncthreads();
    bool safe = true;
    if (thread < segments) {
        SegmentInShared<T, R> rows{factors + thread * Layout::segment, job.rows - first_row - thread * R};
        SegmentEnds<T> own;
        safe = factor_segment<R, 4>(rows, own);
        ends[thread] = own;
    }
    safe = __syncthreads_and(safe);
    if (thread == 0) {
        safe = factor_band(ends, segments, links, bands[most_bands]) && safe;
        *fine = safe;
    }
    if (blocks > 1) meet_in_cluster();
    else __syncthreads();
    if (thread < blocks) {
        const unsigned there = in_block(shared_address(bands + most_bands), thread);
        unsigned words[sizeof(SegmentEnds<T>) / 4], good;
#pragma unroll
        for (unsigned w = 0; w < sizeof words / 4; ++w) asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(words[w]) : "r"(there + 4 * w) : "memory");
        asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(good) : "r"(in_block(shared_address(const_cast<unsigned*>(fine)), thread)) : "memory");
#pragma unroll
        for (unsigned w = 0; w < sizeof words / 4; ++w) reinterpret_cast<unsigned*>(bands + thread)[w] = words[w];
        safe = good;
    }
    __syncthreads();
    if (thread == 0) safe = factor_join(bands, blocks, join) && safe;
    await_the_kernel_before();
    if (thread == 0) job.opening.enter();
    if (!__syncthreads_and(safe)) {
        sets.abandon();
        mark_all(job);
        if (blocks > 1) meet_in_cluster();
        return;
    }
    for (unsigned k = blockIdx.x * Threads + static_cast<unsigned>(thread); k < job.systems; k += gridDim.x * Threads) job.marks[k] = 0;
    __threadfence();
    if (blocks > 1) meet_in_cluster();
    else __syncthreads();
    if (thread == 0) atomicAdd(job.cleared, 1u);

    const T* const own = factors + segment * Layout::segment;
    const BandStore<T, R> out(job, memory + layout.stage, first_row);
    T* const pairs = memory + layout.pairs;
    // What a cluster's first block has drawn goes to the others with the pairs of the turn behind: a draw is slow, and all of them wait for pairs.
    unsigned tile = team, after = team + teams, third = after + teams, later = third + teams;
    if (whole && thread == 0 && rank == 0) later = 3 * teams + atomicAdd(job.tickets, 1u);
    for (unsigned turn = 0; tile < job.tiles; ++turn) {
        T y[R];
        const unsigned told = later;
        if (whole && thread == 0 && rank == 0) later = 3 * teams + atomicAdd(job.tickets, 1u);
        const auto next = sets.source(after);
        const unsigned barrier = shared_address(barriers + 1 + (turn & 1));
        T* const arrived = pairs + (turn & 1) * 2 * blocks * across + 2 * column;
        if (thread == 0 && blocks > 1) Arrival{barrier}.expect(static_cast<unsigned>(2 * blocks * across) * static_cast<unsigned>(sizeof(T)) + (whole ? 4 : 0));
        sets.take(tile, turn & 1, y);
        sets.load(next);
        if (!whole) sets.touch(after);

        eliminate_rows(own, y);
        const T z = first_of_rows(own, y);
        last[segment * across] = y[R - 1], first[segment * across] = z;
        __syncthreads();
        if (segment == 0) {
            T g = 0, head = 0;
#pragma unroll 1
            for (int s = 0; s < segments; ++s) {
                const BandLink<T> link = links[s];
                T d = last[s * across];
                if (s + 1 < segments) d = fused(-link.coupling, first[(s + 1) * across], d);
                g = fused(-link.lower, g, d * link.inverse);
                last[s * across] = g;
            }
#pragma unroll 1
            for (int s = segments - 2; s >= 0; --s) head = fused(-links[s].upper, head, last[s * across]);
            head = fused(-links[0].beta, head, first[0]);
            T x_band = 0, before = 0;
            if (blocks > 1) {
                const unsigned slot = shared_address(arrived + 2 * rank * across);
#pragma unroll 1
                for (int b = 0; b < blocks; ++b) send(in_block(slot, b), g, head, in_block(barrier, b));
                if constexpr (whole) {
                    const unsigned tell = __shfl_sync(~0u, told, 0);
                    if (rank == 0 && thread < blocks) send(in_block(shared_address(drawn + (turn & 1)), thread), tell, in_block(barrier, thread));
                }
                Arrival{barrier}.wait_cluster(turn >> 1 & 1);
                T gamma[most_bands];
#pragma unroll
                for (int s = 0; s < most_bands; ++s)
                    if (s < blocks) {
                        const Join<T> j = join[s];
                        const T after = s + 1 < blocks ? arrived[2 * (s + 1) * across + 1] : T(0);
                        gamma[s] = fused(-j.coupling, after, arrived[2 * s * across]) * j.inverse;
                        if (s) gamma[s] = fused(-j.lower, gamma[s - 1], gamma[s]);
                    }
                T follows = 0;
#pragma unroll
                for (int s = most_bands - 1; s >= 0; --s)
                    if (s < blocks) {
                        follows = fused(-join[s].upper, follows, gamma[s]);
                        if (s == rank) x_band = follows;
                        if (s + 1 == rank) before = follows;
                    }
            } else {
                x_band = g * join[0].inverse;
            }
            first[0] = before, last[(segments - 1) * across] = x_band;
#pragma unroll 1
            for (int s = segments - 2; s >= 0; --s) last[s * across] = x_band = fused(-links[s].upper, x_band, fused(-links[s].fill, before, last[s * across]));
        }
        __syncthreads();
        const T x = last[segment * across], before = segment ? last[(segment - 1) * across] : first[0];
        y[R - 1] = x;
        substitute_rows(own, before, y);

        const ColumnSet set = set_of(job, tile);
        // What is not finite has reached the segment's first row, or its last.
        const bool bad = column < set.columns && !(y[0] * T(0) + x * T(0) == T(0));
        if constexpr (whole) {
            __syncthreads();
            if (column < set.columns) {
                if (bad) mark_system(job, set.system + static_cast<unsigned>(column));
                else store_column<Copies, false>(job, set, y, first_row);
            }
        } else if (!__syncthreads_or(bad)) {
            out.all(set, y);
        } else if (column < set.columns) {
            if (!bad) out.one(set, y);
            else if (column < set.own) mark_system(job, set.system + static_cast<unsigned>(column));
        }
        tile = after, after = third, third = whole ? drawn[turn & 1] : third + teams;
    }
    if (blocks > 1) meet_in_cluster();
#endif
}

}  // namespace trifold::cuda
