// SPDX-License-Identifier: BSD-3-Clause
// What the memory allows where columns lie side by side and rows begin anywhere: every row's piece of 256 bytes is a copy of its own (cp.async.bulk), which lies in
// shared memory as far from a line of 128 bytes as it does in memory, and is stored as the kernels store it. That moves more than the tensors which the kernels use; they
// have no warp to spare that would ask for so many copies.
#pragma once

#include <algorithm>

#include "backends/cuda/tridiagonal/block/columns_launch.cuh"
#include "bench/cuda/gpu.cuh"

namespace trifold::bench {
namespace detail {

inline constexpr int shifted_warps = 8, shifted_pieces = 2, shifted_slots = 9;

template <class T>
struct ShiftedSlice {
    static constexpr int rows = 16, wide = 256 / static_cast<int>(sizeof(T)), pitch = 384 / static_cast<int>(sizeof(T)), all = 4 * rows * pitch;
    static constexpr int barriers_at = shifted_slots * all * static_cast<int>(sizeof(T)), bytes = barriers_at + shifted_slots * 8 + 16;
};

/// A block has 256 rows of every tile, in `blocks` of which a column goes on. Tiles are drawn from counters, job.tickets[rank].
template <class T>
__global__ void __launch_bounds__(32 * shifted_warps, 1) move_shifted_columns(const __grid_constant__ cuda::ColumnJob<T> job, int blocks) {
    using namespace cuda;
    using S = ShiftedSlice<T>;
    constexpr int slices = shifted_pieces * shifted_warps, slots = shifted_slots;
    extern __shared__ __align__(128) unsigned char column_memory[];
    const int thread = static_cast<int>(threadIdx.x), lane = thread & 31, warp = thread >> 5, rank = static_cast<int>(blockIdx.x) % blocks;
    T* const ring = reinterpret_cast<T*>(column_memory);
    auto* const barriers = reinterpret_cast<unsigned long long*>(column_memory + S::barriers_at);
    auto* const drawn = reinterpret_cast<unsigned*>(barriers + slots);
    const auto arrival = [&](int slot) { return Arrival{shared_address(barriers + slot)}; };
    for (int s = thread; s < slots; s += 32 * shifted_warps) arrival(s).prepare(1);
    const unsigned first = blockIdx.x / static_cast<unsigned>(blocks), apart = gridDim.x / static_cast<unsigned>(blocks);
    if (thread < 3) drawn[thread] = first + static_cast<unsigned>(thread) * apart;
    __syncthreads();

    const auto row_of = [&](int slice) { return ((rank * shifted_warps + slice % shifted_warps) * shifted_pieces + slice / shifted_warps) * S::rows; };
    const auto offset_of = [](const T* at) { return static_cast<int>(reinterpret_cast<std::uintptr_t>(at) % 128 / sizeof(T)); };
    const auto fill = [&](unsigned tile, int slice, int slot) {
        if (tile >= job.tiles) return;
        const ColumnPlace place = column_place(job, tile);
        const int i = lane % S::rows, row = row_of(slice) + i;
        const auto wide = static_cast<unsigned>(min(static_cast<std::int64_t>(S::wide), job.columns - place.column));
        const unsigned bytes = row < job.rows ? static_cast<unsigned>((offset_in_vector(column_corner(job.operand[3], place, place.column, row)) + wide) * sizeof(T) + 15) & ~15u : 0u;
        const unsigned all = __reduce_add_sync(~0u, 2 * bytes);  // two operands a lane
        if (lane == 0) arrival(slot).expect(all);
        __syncwarp();
        for (int k = lane / S::rows; k < 4 && bytes; k += 2) {
            const T* const from = column_corner(job.operand[k], place, place.column, row);
            arrival(slot).copy(shared_address(ring + slot * S::all + (i * 4 + k) * S::pitch + offset_of(from)) & ~15u, reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(from) & ~std::uintptr_t{15}), bytes);
        }
    };
    for (int s = warp; s < slots; s += shifted_warps) fill(first, s, s);
    int slot = warp;
    unsigned phase = 0;
#pragma unroll 1
    for (unsigned turn = 0;; ++turn) {
        const unsigned tile = drawn[turn & 3];
        if (tile >= job.tiles) break;
        unsigned next = 0;
        if (thread == 0) next = 3 * apart + atomicAdd(job.tickets + rank, 1u);
        const ColumnPlace place = column_place(job, tile);
        int at_slot = slot;
        unsigned at_phase = phase;
        for (int p = 0; p < shifted_pieces; ++p) {
            if (p > 0) {
                __syncthreads();
                if ((at_slot += shifted_warps) >= slots) at_slot -= slots, at_phase ^= 1;
            }
            const int slice = p * shifted_warps + warp, row = row_of(slice);
            arrival(at_slot).wait(at_phase);
            T v[S::wide / 32][S::rows];
#pragma unroll
            for (int i = 0; i < S::rows; ++i) {
                const T* const from = ring + at_slot * S::all + (i * 4 + 3) * S::pitch + offset_of(column_corner(job.operand[3], place, place.column, row + i)) + lane;
#pragma unroll
                for (int u = 0; u < S::wide / 32; ++u) v[u][i] = from[32 * u];
            }
            __syncwarp();
            const int later = slice + slots;
            fill(drawn[(turn + static_cast<unsigned>(later / slices)) & 3], later % slices, at_slot);
#pragma unroll
            for (int u = 0; u < S::wide / 32; ++u) {
                if (place.column + 32 * u + lane >= job.columns) continue;
                T* to = column_corner(job.operand[4], place, place.column + 32 * u + lane, row);
#pragma unroll
                for (int i = 0; i < S::rows; ++i) {
                    if (row + i < job.rows) __stcs(to, v[u][i]);
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

/// Enqueues one pass. job: of columns in tiles of 256 bytes of a row; its tickets, a word for every 256 rows, are zero.
template <class T>
void move_shifted_columns(const cuda::ColumnJob<T>& job) {
    using S = detail::ShiftedSlice<T>;
    constexpr int rows = S::rows * detail::shifted_warps * detail::shifted_pieces;
    const int blocks = (job.rows + rows - 1) / rows, most = std::max(cuda::multiprocessors_of_current() / blocks, 1);
    cudaFuncSetAttribute(detail::move_shifted_columns<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::bytes);
    const unsigned groups = std::min(static_cast<unsigned>(most), job.tiles);
    detail::move_shifted_columns<T><<<groups * static_cast<unsigned>(blocks), 32 * detail::shifted_warps, S::bytes>>>(job, blocks);
}

}  // namespace trifold::bench
