// SPDX-License-Identifier: BSD-3-Clause
// One matrix, many columns side by side, as in columns.cuh, where the copy engine takes rhs and x as tensors: two sets have their places in shared memory, each comes and goes by one request, and x
// leaves from where its right-hand sides were. In single precision a thread that stores its rows itself takes as many instructions as in double for half of the bytes.
//
// Words per row: 1 read, 1 written. Numerics, marks and draws: columns.cuh, with the same bits.
#pragma once

#include "backends/cuda/tridiagonal/block/tensor_map.hpp"
#include "backends/cuda/tridiagonal/shared/columns.cuh"

namespace trifold::cuda {

inline constexpr int ring_stages = 2;

/// Columns, rows, the level above.
struct ColumnMaps {
    TensorMap rhs, x;
};

/// A set of columns with its place in shared memory: `size` elements from row `first_row` on; nothing beyond the last set. load, store: by one thread.
template <class T>
struct RingSet {
    const ColumnMaps& maps;
    const unsigned place, barrier;
    const int column, row, line, bytes;
    const bool there;

    __device__ __forceinline__ RingSet(const SharedJob<T>& job, const ColumnMaps& maps, unsigned tile, const T* memory, unsigned barrier, int first_row, int size)
        : maps(maps), place(shared_address(memory)), barrier(barrier), column(static_cast<int>(job.order(tile) % job.tiles_per_line) * job.across), row(first_row),
          line(static_cast<int>(tile / job.tiles_per_line)), bytes(size * static_cast<int>(sizeof(T))), there(tile < job.tiles) {}

    __device__ __forceinline__ void load() const {
        if (!there) return;
        Arrival{barrier}.expect(static_cast<unsigned>(bytes));
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(place), "l"(&maps.rhs), "r"(column), "r"(row), "r"(line),
                     "r"(barrier)
                     : "memory");
    }
    __device__ __forceinline__ void wait(unsigned parity) const {
        if (there) Arrival{barrier}.wait(parity);
    }
    template <bool Adds = false>
    __device__ __forceinline__ void store() const {
        if constexpr (Adds) asm volatile("cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(&maps.x), "r"(column), "r"(row), "r"(line), "r"(place) : "memory");
        else asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(&maps.x), "r"(column), "r"(row), "r"(line), "r"(place) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
};

/// What this thread has stored has been read: its place may be filled again.
__device__ __forceinline__ void await_stored_places() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

template <class T, int R, int Threads, int Blocks, bool Closed = false, bool Adds = false>
__global__ void __launch_bounds__(Threads, Blocks) solve_shared_ring(const __grid_constant__ SharedJob<T> job, const __grid_constant__ ColumnMaps maps) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) int4 shared[];
    __shared__ unsigned long long arrivals[ring_stages];
    __shared__ unsigned tiles[ring_stages];
    T* const memory = reinterpret_cast<T*>(shared);
    job.opening.open();
    const int thread = static_cast<int>(threadIdx.x), across = job.across, segments = job.segments, column = thread & (across - 1), segment = thread / across;
    const int size = segments * R * across;
    const ColumnsLayout<T, R> layout(segments, across, 0, Closed);
    T* const behind = memory + (ring_stages - 1) * size;  // the layout has one set
    const auto set_at = [&](unsigned tile, int stage) { return RingSet<T>(job, maps, tile, memory + stage * size, shared_address(arrivals + stage), 0, size); };
    const auto load = [&](unsigned tile, int stage) {
        tiles[stage] = tile;
        set_at(tile, stage).load();
    };
    if (thread == 0) {
        for (int s = 0; s < ring_stages; ++s) Arrival{shared_address(arrivals + s)}.prepare(1);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        for (int s = 0; s < ring_stages; ++s) load(blockIdx.x + static_cast<unsigned>(s) * gridDim.x, s);
    }
    T* const factors = behind + layout.factors;
    auto* const join = reinterpret_cast<Join<T>*>(behind + layout.join);
    T *const last = behind + layout.last + column, *const first = behind + layout.first + column, *const flags = behind + layout.flags;
    if (segment == 0) first[segments * across] = flags[column] = 0;
    const bool safe = eliminate_matrix<R, Closed>(job, factors, reinterpret_cast<SegmentEnds<T>*>(behind + layout.ends), join);
    await_the_kernel_before();
    if (thread == 0) job.opening.enter();
    if (!__syncthreads_and(safe)) {
        for (int s = 0; s < ring_stages; ++s)
            set_at(tiles[s], s).wait(0);
        mark_all(job);
        return;
    }

    const T* const own = factors + segment * layout.segment;
    for (unsigned turn = 0;; ++turn) {
        const int stage = static_cast<int>(turn % ring_stages);
        const unsigned tile = tiles[stage];
        if (tile >= job.tiles) break;
        unsigned later;
        if (thread == 0) later = ring_stages * gridDim.x + atomicAdd(job.tickets, 1u);
        T* const at = memory + stage * size + segment * R * across + column;
        Arrival{shared_address(arrivals + stage)}.wait(turn / ring_stages & 1);
        T y[R];
#pragma unroll
        for (int i = 0; i < R; ++i) y[i] = at[i * across];
        const T x = solve_rows<Closed>(own, join, last, first, segment, segments, across, y, job.rows - segment * R);
#pragma unroll
        for (int i = 0; i < R; ++i) at[i * across] = y[i];
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the copy engine will read x

        const ColumnSet set = set_of(job, job.order(tile));
        const bool there = column < set.columns;
        // What is not finite has reached the segment's first row, or its last.
        bool bad = there && !(y[0] * T(0) + x * T(0) == T(0));
        const bool some = any_bad(bad, flags + column, segment == 0);
        if (there && segment == 0) {
            job.marks[set.system + static_cast<unsigned>(column)] = bad;
            if (bad) atomicAdd(job.handed_over, 1ull);
        }
        if (some && there && !bad) store_column<ColumnCopies::vectors, false, Adds>(job, set, y);
        if (thread == 0) {
            if (!some) set_at(tile, stage).template store<Adds>(), await_stored_places();
            load(later, stage);
        }
    }
    if (thread == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#endif
}

}  // namespace trifold::cuda
