// SPDX-License-Identifier: BSD-3-Clause
// One matrix, many columns side by side, a cluster's blocks having bands of the rows, as in bands.cuh with the copy engine, where x is rhs.
//
// What is not finite in one block must not be stored by another: the right-hand side of a failed system stays as it is. So nothing of a set is stored before all blocks have told which of its columns
//   are not finite, with the pairs of the turn behind; the last set has a turn without a set behind it. Who stores marks too: nothing has to be cleared before, and nobody waits for it.
// Words per row: 1 read, 1 written. Numerics: segment.cuh; marks as in columns.cuh.
#pragma once

#include "backends/cuda/tridiagonal/block/store_rows.cuh"
#include "backends/cuda/tridiagonal/shared/band_block.cuh"
#include "backends/cuda/tridiagonal/shared/columns_ring.cuh"

namespace trifold::cuda {

/// Words behind the last ones of BandsLayout: what joins the segments lies there twice, and bits of columns of every block.
template <class T>
__host__ __device__ constexpr int in_place_words(int segments, int across) { return 2 * segments * across + 2 * most_bands * 8 / static_cast<int>(sizeof(T)); }

template <class T, int R, int Threads, bool Adds = false>
__global__ void __launch_bounds__(Threads, 1) solve_shared_bands_in_place(const __grid_constant__ SharedJob<T> job, const __grid_constant__ ColumnMaps maps) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    constexpr int stages = band_stages;
    extern __shared__ __align__(128) int4 shared[];
    __shared__ unsigned long long barriers[2 + stages];  // pairs of even and of odd turns, sets
    __shared__ unsigned drawn[2], bad_here[2][2];         // bits of columns, of two turns
    T* const memory = reinterpret_cast<T*>(shared);
    job.opening.open();
    const int thread = static_cast<int>(threadIdx.x);
    const int across = job.across, segments = job.segments, column = thread & (across - 1), segment = thread / across;
    const int blocks = job.cluster, rank = static_cast<int>(blockIdx.x) % blocks, first_row = rank * segments * R;
    const unsigned team = blockIdx.x / static_cast<unsigned>(blocks), teams = gridDim.x / static_cast<unsigned>(blocks);
    const bool mover = thread + 32 == static_cast<int>(blockDim.x);  // of a warp that joins nothing
    const BandsLayout<T, R> layout(segments, across, blocks, false, stages);
    auto* const bad_there = reinterpret_cast<float2*>(memory + layout.last + 4 * segments * across);  // the same bits of every block, of two turns
    const auto set_at = [&](unsigned tile, int stage) { return RingSet<T>(job, maps, tile, memory + stage * layout.stage, shared_address(barriers + 2 + stage), first_row, layout.stage); };
    if (thread < 2) Arrival{shared_address(barriers + thread)}.prepare(1), bad_here[thread][0] = bad_here[thread][1] = 0;
    if (mover) {
        for (int s = 0; s < stages; ++s) Arrival{shared_address(barriers + 2 + s)}.prepare(1);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        set_at(team, 0).load(), set_at(team + teams, 1).load();
    }
    const BandBlock<T, R> block(memory, layout, rank, blocks, segments, across);
    const bool safe = block.eliminate(job, first_row, static_cast<int>(blockDim.x));
    await_the_kernel_before();
    if (thread == 0) job.opening.enter();
    if (!__syncthreads_and(safe)) {
        set_at(team, 0).wait(0), set_at(team + teams, 1).wait(0);
        mark_all(job);
        meet_in_cluster();
        return;
    }

    const T* const own = block.factors + segment * BandsLayout<T, R>::segment;
    const unsigned bytes = static_cast<unsigned>(blocks * (2 * across * static_cast<int>(sizeof(T)) + 8) + 4);
    // What a cluster's first block has drawn goes to the others with the pairs of the turn behind: a draw is slow, and all of them wait for pairs.
    unsigned before = job.tiles, tile = team, after = team + teams, third = after + teams, later = third + teams, phase = 0;
    int stage = 0;
    if (thread == 0 && rank == 0) later = 3 * teams + atomicAdd(job.tickets, 1u);
    for (unsigned turn = 0; tile < job.tiles || before < job.tiles; ++turn) {
        const int odd = static_cast<int>(turn & 1), left = stage ? stage - 1 : stages - 1;  // the place of the set before
        const unsigned told = later, barrier = shared_address(barriers + odd);
        if (thread == 0 && rank == 0) later = 3 * teams + atomicAdd(job.tickets, 1u);
        T* const arrived = memory + layout.pairs + odd * 2 * blocks * across + 2 * column;
        T *const last = memory + layout.last + odd * 2 * segments * across + column, *const first = last + segments * across;
        T* const place = memory + stage * layout.stage + segment * R * across + column;
        if (thread == 0) Arrival{barrier}.expect(bytes);
        set_at(tile, stage).wait(phase);
        T y[R];
#pragma unroll
        for (int i = 0; i < R; ++i) y[i] = place[i * across];
        eliminate_rows(own, y);
        const T z = first_of_rows(own, y);
        last[segment * across] = y[R - 1], first[segment * across] = z;
        __syncthreads();
        if (segment == 0) {
            T head, x_before = 0;
            typename BandBlock<T, R>::Few ends;
            const T g = block.reduce(last, first, ends, head);
            block.tell(arrived, barrier, g, head);
            const unsigned tell = __shfl_sync(~0u, told, 0);
            if (thread < blocks) {
                const unsigned news = in_block(barrier, thread);
                send(in_block(shared_address(bad_there + odd * most_bands + rank), thread), __uint_as_float(bad_here[odd ^ 1][0]), __uint_as_float(bad_here[odd ^ 1][1]), news);
                if (rank == 0) send(in_block(shared_address(drawn + odd), thread), tell, news);
            }
            Arrival{barrier}.wait_cluster(turn >> 1 & 1);
            const T x_band = block.join_all(arrived, x_before);
            block.substitute(last, first, ends, x_band, x_before);
        }
        __syncthreads();

        // The set before.
        bool apart = false;
        if (before < job.tiles) {
            unsigned low = 0, high = 0;
            for (int b = 0; b < blocks; ++b) low |= __float_as_uint(bad_there[odd * most_bands + b].x), high |= __float_as_uint(bad_there[odd * most_bands + b].y);
            const ColumnSet set = set_of(job, job.order(before));
            const bool fails = (column & 32 ? high : low) >> (column & 31) & 1;
            apart = low | high;
            if (thread == 0) bad_here[odd ^ 1][0] = bad_here[odd ^ 1][1] = 0;
            if (mover && !apart) set_at(before, left).template store<Adds>();
            if (rank == 0 && segment == 0 && column < set.columns) {
                job.marks[set.system + static_cast<unsigned>(column)] = fails;
                if (fails) atomicAdd(job.handed_over, 1ull);
            }
            if (apart && !fails && column < set.columns) {
                const T* const from = memory + left * layout.stage + segment * R * across + column;
                T* to = cuda::place(job, job.x, set.system + static_cast<unsigned>(column)) + static_cast<std::int64_t>(first_row + segment * R) * job.x.row_stride;
#pragma unroll 1
                for (int i = 0; i < min(R, job.rows - first_row - segment * R); ++i, to += job.x.row_stride) store_or_add<Adds ? Adding::loads : Adding::no>(to, from[i * across]);
            }
        }
        if (tile < job.tiles) {
            const T x = last[segment * across], x_before = segment ? last[(segment - 1) * across] : first[0];
            y[R - 1] = x;
            substitute_rows(own, x_before, y);
#pragma unroll
            for (int i = 0; i < R; ++i) place[i * across] = y[i];
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the copy engine will read x
            // What is not finite has reached the segment's first row, or its last.
            if (column < set_of(job, job.order(tile)).columns && !(y[0] * T(0) + x * T(0) == T(0))) atomicOr(&bad_here[odd][column >> 5], 1u << (column & 31));
        }
        if (apart) __syncthreads();
        if (mover) await_stored_places(), set_at(third, left).load();
        if (++stage == stages) stage = 0, phase ^= 1;
        before = tile, tile = after, after = third, third = drawn[odd];
    }
    if (mover) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    meet_in_cluster();
#endif
}

}  // namespace trifold::cuda
