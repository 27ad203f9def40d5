// SPDX-License-Identifier: BSD-3-Clause
// What the memory allows where rows lie side by side and are read and written as the kernels of rows do it: the same tiles, bulk copies, warps, blocks and
// clusters, all loads and stores, and nothing else: rhs goes to x as it came. Nobody waits for another warp.
#pragma once

#include <algorithm>

#include "backends/cuda/tridiagonal/block/residency.hpp"
#include "backends/cuda/tridiagonal/block/rows_copy.cuh"
#include "backends/cuda/tridiagonal/block/rows_layout.hpp"
#include "backends/cuda/tridiagonal/block/tiles.hpp"
#include "backends/cuda/tridiagonal/device/overlap.cuh"

namespace trifold::bench {

namespace detail {

/// Tiles are drawn from job.tickets[part of a system].
template <class T, bool Couple>
__global__ void __launch_bounds__(256) move_rows(const __grid_constant__ cuda::TileJob<T> job) {
    using namespace cuda;
    const int lane = static_cast<int>(threadIdx.x) & 31, warps = static_cast<int>(blockDim.x) >> 5, warp = static_cast<int>(threadIdx.x) >> 5;
    const int blocks = Couple ? job.blocks : 1;
    const RowsMemory layout(static_cast<int>(sizeof(T)), warps, job.tile_elements, job.last_elements, job.flags, Couple, warps * blocks);
    RowsPlace<T> home;
    home.warp = warp;
    home.part = Couple ? (blocks > 1 ? static_cast<int>(blockIdx.x) % blocks * warps : 0) + warp : 0;
    home.tiles = layout.tiles + warp * 4 * job.tile_elements * static_cast<int>(sizeof(T));
    home.apart = Couple && warp == warps - 1 ? job.last_elements : job.tile_elements;
    home.bad = Couple ? -1 : layout.bad + warp * job.flags;
    home.arrival = {shared_address(in_shared<char>(8 * warp))};
    home.first_row = Couple ? min(home.part * job.block_rows, job.rows) : 0;
    home.rows = Couple ? min(job.block_rows, job.rows - home.first_row) : job.rows;
    const unsigned teams = Couple ? gridDim.x / static_cast<unsigned>(blocks) : gridDim.x * static_cast<unsigned>(warps);
    unsigned turn = Couple ? blockIdx.x / static_cast<unsigned>(blocks) : (blockIdx.x * static_cast<unsigned>(warps) + threadIdx.x / 32) * job.draw;
    if (turn >= job.tiles) return;
    if (lane == 0) home.arrival.prepare(4);
    __syncwarp();
    unsigned shifts = ask_any(job, home, job.tile_of(turn), lane);
    after_the_kernel_before();
#pragma unroll 1
    for (unsigned round = 0;; ++round) {
        unsigned next_turn = turn + 1;
        if ((next_turn & (job.draw - 1)) == 0) {
            if (lane == 0) next_turn = (atomicAdd(job.tickets + home.part, 1u) + teams) * job.draw;
            next_turn = __shfl_sync(~0u, next_turn, 0);
        }
        const unsigned tile = job.tile_of(turn), next = job.tile_of(next_turn);
        await_copies();
        home.arrival.wait(round & 1);
        __syncwarp();
        const bool quick = job.within_after(tile, next);
        unsigned later_shifts = 0;
        if (quick && lane < 3) later_shifts = ask_within(job, home, next, lane, shifts);
        if (!(job.within(tile) && job.runs_stored && store_within(job, home, tile, static_cast<int>(shifts >> 24), lane)))
            finish_any(job, home, tile, shifts >> 24, true, lane);
        turn = next_turn;
        __syncwarp();
        await_reads();
        __syncwarp();
        if (turn >= job.tiles) break;
        if (quick) {
            if (lane == 3) later_shifts = ask_within(job, home, next, lane, shifts);
            shifts = __reduce_or_sync(~0u, later_shifts);
        } else {
            shifts = load_any(job, home, next, lane);
        }
    }
}

template <class T, bool Couple>
void enqueue_moves(const cuda::TileJob<T>& job, int shared, int resident) {
    auto* const kernel = detail::move_rows<T, Couple>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * 1024);
    cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
    const auto warps = static_cast<unsigned>(job.warps), blocks = static_cast<unsigned>(Couple ? job.blocks : 1);
    const unsigned per = static_cast<unsigned>(std::min(resident, 228 * 1024 / (shared + 1024)));
    const unsigned teams = per * static_cast<unsigned>(cuda::multiprocessors_of_current()) / blocks;
    const unsigned needed = Couple ? job.tiles : (job.tiles + job.draw * warps - 1) / (job.draw * warps);
    kernel<<<std::min(teams, needed) * blocks, 32 * warps, static_cast<std::size_t>(shared)>>>(job);
}

}  // namespace detail

/// Enqueues one pass. counters: 32 words of the device's memory.
template <class T>
void move_rows(cuda::TileJob<T> job, const cuda::TileKernel<T>& kernel, unsigned char* marks, unsigned* counters) {
    const int shared = cuda::shared_bytes(job, kernel), resident = kernel.warps * kernel.resident / job.warps;
    job.tickets = counters, job.marks = marks;
    cudaMemsetAsync(counters, 0, 32 * sizeof *counters);
    if (kernel.coupled) detail::enqueue_moves<T, true>(job, shared, resident);
    else detail::enqueue_moves<T, false>(job, shared, resident);
}

}  // namespace trifold::bench
