// SPDX-License-Identifier: BSD-3-Clause
// What the memory allows where columns are read and written in the pieces that the kernels of columns use: the same tensor maps, slices, slots, blocks
// and clusters, all loads and stores, and nothing else: rhs goes to x as it came. Nobody waits for another block.
#pragma once

#include <algorithm>

#include "backends/cuda/tridiagonal/block/columns_launch.cuh"
#include "backends/cuda/tridiagonal/block/tiles.hpp"
#include "bench/cuda/gpu.cuh"

namespace trifold::bench {

inline constexpr int most_ranks = 16;

namespace detail {

/// Tiles are drawn from counters, job.tickets[rank].
template <class T, int R, int L, int Share, bool Shifted>
__global__ void __launch_bounds__(cuda::column_threads<T>, 1) move_columns(const __grid_constant__ cuda::ColumnJob<T> job) {
    using namespace cuda;
    constexpr int per_warp = 32 / L, wide = L * Share;
    using S = SliceLayout<T, R, L, Share, Shifted>;
    extern __shared__ __align__(128) unsigned char column_memory[];
    const int thread = static_cast<int>(threadIdx.x), lane = thread & 31, warp = thread >> 5;
    const ColumnCut& cut = job.cut;
    const int slices = cut.warps / Share, slots = cut.slots, blocks = cut.blocks, chunks = cut.chunks;
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
    const auto column_of = [&](int role) { return role % across * wide; };
    const auto row_of = [&](int role) { return (rank * chunks + role / across * per_warp) * R; };
    const auto fill = [&](unsigned tile, int column, int row, int slot) {
        if (tile >= job.tiles || lane != 0 || part != 0) return;
        const ColumnPlace place = column_place(job, tile);
        load_slice<T, R, L, Share, Shifted>(job, place, place.column + column, row, ring + slot * S::all, arrival(slot));
    };
    const int role = warp / Share;
    for (int s = role; s < slots; s += slices) fill(cluster + static_cast<unsigned>(s / slices) * clusters, column_of(role), row_of(role), s);
    const int later = role + slots % slices, later_role = later < slices ? later : later - slices;
    const unsigned later_turns = static_cast<unsigned>(slots / slices + (later < slices ? 0 : 1));
    const int first_row = (rank * chunks + role / across * per_warp + lane / L) * R, count = job.rows - first_row;
    int slot = role;
    unsigned phase = 0;
#pragma unroll 1
    for (unsigned turn = 0;; ++turn) {
        const unsigned tile = drawn[turn & 3];
        if (tile >= job.tiles) break;
        unsigned next = 0;
        if (thread == 0) next = 3 * clusters + atomicAdd(job.tickets + rank, 1u);
        const ColumnPlace place = column_place(job, tile);
        arrival(slot).wait(phase);
        T v[R];
        {
            const T* const at = ring + slot * S::all + 3 * S::operand + lane / L * R / S::offsets * S::pitch + part * L + lane % L;
            const unsigned offset = Shifted ? static_cast<unsigned>(offset_in_vector(column_corner(job.operand[3], place, place.column, 0))) : 0u;
#pragma unroll
            for (int i = 0; i < R; ++i)
                v[i] = at[i % S::offsets * S::region + i / S::offsets * S::pitch +
                          (offset + static_cast<unsigned>(i % S::offsets) * static_cast<unsigned>(job.operand[3].row_stride)) % S::offsets];
        }
        if (Share == 1) __syncwarp();
        else asm volatile("bar.sync %0, %1;" ::"r"(1 + role), "n"(32 * Share) : "memory");
        fill(drawn[turn + later_turns & 3], column_of(later_role), row_of(later_role), slot);
        const std::int64_t column = place.column + column_of(role) + part * L + lane % L;
        if (column < job.columns) {
            T* to = column_corner(job.operand[4], place, column, first_row);
#pragma unroll
            for (int i = 0; i < R; ++i) {
                if (i < count) __stcs(to, v[i]);
                to += job.operand[4].row_stride;
            }
        }
        if (thread == 0) drawn[turn + 3 & 3] = next;
        __syncthreads();  // a slot belongs to other warps in turn
        slot += slices;
        if (slot >= slots) slot -= slots, phase ^= 1;
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
    const auto with = [&]<int L, int Share>() {
        constexpr int R = cuda::column_chunk;
        if (cut.shifted) cuda::enqueue_column_kernel<detail::move_columns<T, R, L, Share, true>>(job, nullptr);
        else cuda::enqueue_column_kernel<detail::move_columns<T, R, L, Share, false>>(job, nullptr);
    };
    if constexpr (sizeof(T) == 8) cut.lane_columns == 32 ? with.template operator()<32, 1>() : with.template operator()<16, 1>();
    else cut.share == 2 ? with.template operator()<32, 2>() : with.template operator()<32, 1>();
}

}  // namespace trifold::bench
