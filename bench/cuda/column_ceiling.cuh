// SPDX-License-Identifier: BSD-3-Clause
// What the memory allows where columns are read and written in the pieces that the kernels of columns use: the same tensor maps, slices, slots, blocks
// and clusters, all loads and stores, and nothing else: rhs goes to x as it came. Nobody waits for another block.
#pragma once

#include <algorithm>

#include "backends/cuda/tridiagonal/block/columns_launch.cuh"
#include "backends/cuda/tridiagonal/block/tiles.hpp"
#include "bench/cuda/gpu.cuh"
#include "bench/cuda/shifted_ceiling.cuh"

namespace trifold::bench {

inline constexpr int most_ranks = 16;

namespace detail {

/// Tiles are drawn from counters, job.tickets[rank]. P: slices of a lane, as in columns_dominant.cuh.
template <class T, int R, int L, int Share, bool Shifted, int P>
__global__ void __launch_bounds__(cuda::column_threads<T>, 1) move_columns(const __grid_constant__ cuda::ColumnJob<T> job) {
    using namespace cuda;
    constexpr int per_warp = 32 / L, wide = L * Share;
    using S = SliceLayout<T, R, L, Share, Shifted>;
    extern __shared__ __align__(128) unsigned char column_memory[];
    const int thread = static_cast<int>(threadIdx.x), lane = thread & 31, warp = thread >> 5;
    const ColumnCut& cut = job.cut;
    const int roles = cut.warps / Share, slices = P * roles, slots = cut.slots, blocks = cut.blocks, chunks = cut.chunks;
    const int rank = static_cast<int>(blockIdx.x) % blocks;
    T* const ring = reinterpret_cast<T*>(column_memory);
    auto* const barriers = reinterpret_cast<unsigned long long*>(column_memory + cut.barriers_at);
    auto* const drawn = reinterpret_cast<unsigned*>(barriers + slots + 2);
    const auto arrival = [&](int slot) { return Arrival{shared_address(barriers + slot)}; };
    for (int s = thread; s < slots; s += static_cast<int>(blockDim.x)) arrival(s).prepare(1);
    const unsigned cluster = blockIdx.x / static_cast<unsigned>(blocks), clusters = static_cast<unsigned>(cut.clusters);
    if (thread < 3) drawn[thread] = cluster + static_cast<unsigned>(thread) * clusters;
    __syncthreads();

    const int part = warp % Share, across = cut.across / Share;
    const auto column_of = [&](int slice) { return slice % across * wide; };
    const auto row_of = [&](int slice) { return (rank * chunks + slice % roles / across * per_warp) * P * R + slice / roles * R; };
    const auto fill = [&](unsigned tile, int column, int row, int slot) {
        if (tile >= job.tiles || lane != 0 || part != 0) return;
        const ColumnPlace place = column_place(job, tile);
        load_slice<T, R, L, Share, Shifted>(job, place, place.column + column, row, ring + slot * S::all, arrival(slot));
    };
    const int role = warp / Share;
    for (int s = role; s < slots; s += roles) fill(cluster + static_cast<unsigned>(s / slices) * clusters, column_of(s % slices), row_of(s % slices), s);
    int slot = role;
    unsigned phase = 0;
#pragma unroll 1
    for (unsigned turn = 0;; ++turn) {
        const unsigned tile = drawn[turn & 3];
        if (tile >= job.tiles) break;
        unsigned next = 0;
        if (thread == 0) next = 3 * clusters + atomicAdd(job.tickets + rank, 1u);
        const ColumnPlace place = column_place(job, tile);
        int at_slot = slot;
        unsigned at_phase = phase;
#pragma unroll
        for (int p = 0; p < P; ++p) {
            const int first_row = row_of(p * roles + role) + lane / L * R, count = job.rows - first_row;
            if (p > 0) {
                __syncthreads();
                if ((at_slot += roles) >= slots) at_slot -= slots, at_phase ^= 1;
            }
            arrival(at_slot).wait(at_phase);
            T v[R];
            {
                const T* const at = ring + at_slot * S::all + 3 * S::operand + lane / L * R / S::offsets * S::pitch + part * L + lane % L;
                const unsigned offset = Shifted ? static_cast<unsigned>(offset_in_vector(column_corner(job.operand[3], place, place.column, 0))) : 0u;
#pragma unroll
                for (int i = 0; i < R; ++i)
                    v[i] = at[i % S::offsets * S::region + i / S::offsets * S::pitch +
                              (offset + static_cast<unsigned>(i % S::offsets) * static_cast<unsigned>(job.operand[3].row_stride)) % S::offsets];
            }
            if (Share == 1) __syncwarp();
            else asm volatile("bar.sync %0, %1;" ::"r"(1 + role), "n"(32 * Share) : "memory");
            const int later = p * roles + role + slots;
            fill(drawn[(turn + static_cast<unsigned>(later / slices)) & 3], column_of(later % slices), row_of(later % slices), at_slot);
            const std::int64_t column = place.column + column_of(role) + part * L + lane % L;
            if (column < job.columns) {
                T* to = column_corner(job.operand[4], place, column, first_row);
#pragma unroll
                for (int i = 0; i < R; ++i) {
                    if (i < count) __stcs(to, v[i]);
                    to += job.operand[4].row_stride;
                }
            }
        }
        if (thread == 0) drawn[turn + 3 & 3] = next;
        __syncthreads();  // a slot belongs to other warps in turn
        for (slot += slices; slot >= slots; slot -= slots) phase ^= 1;
    }
}

}  // namespace detail

/// Enqueues one pass. counters: most_ranks words of the device's memory.
template <class T>
void move_columns(const cuda::TileJob<T>& from, const cuda::ColumnCut& cut, unsigned* counters) {
    cuda::ColumnJob<T> job;
    if (!cuda::column_job(from, cut, job)) return;
    job.tickets = counters;
    cudaMemsetAsync(counters, 0, most_ranks * sizeof *counters);
    if (cut.shifted && cut.dominant && cut.columns * sizeof(T) == 256) return move_shifted_columns(job);
    const auto with = [&]<int L, int Share, int P>() {
        constexpr int R = cuda::column_chunk;
        if (cut.shifted) cuda::enqueue_column_kernel<detail::move_columns<T, R, L, Share, true, P>>(job, nullptr);
        else cuda::enqueue_column_kernel<detail::move_columns<T, R, L, Share, false, P>>(job, nullptr);
    };
    constexpr int wide = sizeof(T) == 8 ? 1 : 2;  // pieces of 256 bytes of a row
    if (cut.pieces == 2) with.template operator()<32, wide, 2>();
    else if (cut.lane_columns == 32 && cut.share == wide) with.template operator()<32, wide, 1>();
    else with.template operator()<sizeof(T) == 8 ? 16 : 32, 1, 1>();
}

}  // namespace trifold::bench
