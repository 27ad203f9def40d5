// SPDX-License-Identifier: BSD-3-Clause
// One matrix, many rings whose rows lie side by side, as in rows.cuh: a warp has a run of whole rings. No lane has rows of two of them: `lanes` lanes share a ring's rows, R or less each, always the
// same rows of the matrix, whose factors they keep in registers, of longer rings in shared memory (segment.cuh, ring_lanes.cuh). A lane has R rows that end with its last one; others' among them have no weight, and are not stored.
//
// Shapes and strides: job.hpp; rhs and x have row_stride 1. x may be rhs; nothing else is overwritten but the marks.
// Words per row: 1 read, 1 written. How many rows a lane has, and gaps between rings in shared memory, keep lanes in different banks as far as can be.
// Numerics: segment.cuh, ring_lanes.cuh. Where the matrix is not safe every ring is marked and nothing is stored. What is not finite is found at the ends of a lane's rows: their ring is marked and not stored.
#pragma once

#include "backends/cuda/tridiagonal/shared/ring_lanes.cuh"
#include "backends/cuda/tridiagonal/shared/rows.cuh"

namespace trifold::cuda {

/// Bytes of factors in shared memory.
template <class T, int R, bool Aside>
inline constexpr int ring_factors_bytes = Aside ? 4 * R * 32 * static_cast<int>(sizeof(T)) : 0;

/// Factors of a lane's R rows: in registers, or in shared memory, the same for all warps of a block, a word of every lane side by side.
template <class T, int R, bool Aside>
struct RingRows {
    const SharedJob<T>& job;
    const int row, own, others;  ///< row: where its own begin
    T* const at;                 ///< of the lane; aside
    const bool writes;
    T inverses[Aside ? 1 : R], lowers[Aside ? 1 : R], uppers[Aside ? 1 : R], fills[Aside ? 1 : R];

    __device__ __forceinline__ bool there(int i) const { return i >= others; }
    __device__ __forceinline__ T lower(int i) const { return there(i) ? job.lower[row + i - others] : T(0); }
    __device__ __forceinline__ T diag(int i) const { return there(i) ? job.diag[row + i - others] : T(1); }
    __device__ __forceinline__ T upper(int i) const { return there(i) ? job.upper[row + i - others] : T(0); }
    __device__ __forceinline__ bool real(int) const { return own > 0; }
    __device__ __forceinline__ bool skips(int i) const { return i < others; }
    __device__ __forceinline__ void set(int i, T inverse, T lower, T upper, T fill) {
        if constexpr (Aside) {
            if (writes) at[32 * i] = inverse, at[32 * (R + i)] = lower, at[32 * (2 * R + i)] = upper, at[32 * (3 * R + i)] = fill;
        } else {
            inverses[i] = inverse, lowers[i] = lower, uppers[i] = upper, fills[i] = fill;
        }
    }
    __device__ __forceinline__ T inverse_of(int i) const { return Aside ? at[32 * i] : inverses[Aside ? 0 : i]; }
    __device__ __forceinline__ T lower_of(int i) const { return Aside ? at[32 * (R + i)] : lowers[Aside ? 0 : i]; }
    __device__ __forceinline__ T upper_of(int i) const { return Aside ? at[32 * (2 * R + i)] : uppers[Aside ? 0 : i]; }
    __device__ __forceinline__ T fill_of(int i) const { return Aside ? at[32 * (3 * R + i)] : fills[Aside ? 0 : i]; }
};

/// Aside: factors are in shared memory, for twice as many rows a lane.
template <class T, int R, int Stages, bool Aside, int Threads, int Blocks>
__global__ void __launch_bounds__(Threads, Blocks) solve_shared_ring_rows(const __grid_constant__ SharedJob<T> job) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    job.opening.open();
    using Layout = RowsLayout<T, R, Stages>;
    extern __shared__ __align__(128) int4 shared[];
    unsigned char* const memory = reinterpret_cast<unsigned char*>(shared);
    const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) >> 5, warps = static_cast<int>(blockDim.x) >> 5;
    const Layout layout(warps, 1, job.flags, R * static_cast<int>(sizeof(T)));
    const unsigned barriers = shared_address(memory) + static_cast<unsigned>(warp * Stages * 8);
    T* const buffers = reinterpret_cast<T*>(memory + layout.ring) + warp * Stages * Layout::buffer;
    __shared__ unsigned drawn;
    Draws<false> draws(job.tickets, job.draw, job.tiles, &drawn, lane);

    if (lane < Stages) Arrival{barriers + 8 * static_cast<unsigned>(lane)}.prepare(1);
    asm volatile("fence.mbarrier_init.release.cluster;\n\tfence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    const auto load = [&](unsigned tile, int stage) {
        if (tile < job.tiles) load_run(job, run_of(job, tile, 0, job.rows), buffers + stage * Layout::buffer, barriers + 8 * static_cast<unsigned>(stage), lane);
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    unsigned ahead[Stages - 1];  // the tiles that are on their way
#pragma unroll
    for (int s = 0; s < Stages - 1; ++s) load(ahead[s] = draws.given(), s);

    const int ring = lane / job.lanes, share = lane - ring * job.lanes, begin = share * job.lane_rows;
    const int own = ring < job.groups ? min(job.rows - begin, job.lane_rows) : 0, others = R - own;
    const int place = own ? ring * job.pitch + begin - others : 0;
    RingRows<T, R, Aside> rows{job, begin, own, others, reinterpret_cast<T*>(memory + (layout.total + 15 & ~15)) + lane, warp == 0};
    SegmentEnds<T> ends;
    RingLanes<T> lanes;
    bool safe = factor_segment<R, Aside ? 1 : R>(rows, ends);
    safe = lanes.factor(ends, job.lanes, own > 0, lane) && safe;
    safe = __all_sync(~0u, safe || own == 0);
    await_the_kernel_before();
    if (threadIdx.x == 0) job.opening.enter();
    __syncthreads();
    if (!safe) {
        mark_all(job);
#pragma unroll 1
        for (int s = 0; s < Stages - 1; ++s)  // copies that are on their way
            if (ahead[s] < job.tiles) Arrival{barriers + 8 * static_cast<unsigned>(s)}.wait(0);
        await_copies();
        return;
    }

    unsigned char* const flags = memory + layout.flags + warp * job.flags;
    int stage = 0;
    unsigned parity = 0;
    for (unsigned tile; (tile = ahead[0]) < job.tiles;) {
        draws.ask();
        const Run<T> run = run_of(job, tile, 0, job.rows);
        T* const first = buffers + stage * Layout::buffer + run.shift;
        T* const d = first + place;
        const bool there = own > 0 && ring < run.systems;
        asm volatile("cp.async.wait_group %0;" ::"n"(Stages - 2) : "memory");
        Arrival{barriers + 8 * static_cast<unsigned>(stage)}.wait(parity);
        __syncwarp();
        // Others' rows are left out: they have no weight, but what is no number there would be felt, a neighbour's or what lies between rings.
        T y[R];
#pragma unroll
        for (int i = 0; i < R; ++i) y[i] = i >= others ? d[i] : T(0);
        y[0] *= rows.inverse_of(0);
#pragma unroll
        for (int i = 1; i < R; ++i) y[i] = fused(-rows.lower_of(i), y[i - 1], i < R - 1 ? y[i] * rows.inverse_of(i) : y[i]);
        T z = y[R - 2];
#pragma unroll
        for (int i = R - 3; i >= 0; --i) z = fused(-rows.upper_of(i), z, y[i]);

        // Others must not suffer from what is not finite here.
        T before;
        bool bad = !(y[R - 1] * T(0) + z * T(0) == T(0));
        const T x = lanes.join(bad ? T(0) : y[R - 1], bad ? T(0) : z, lane, before);
        y[R - 1] = x;
#pragma unroll
        for (int i = R - 2; i >= 0; --i) y[i] = fused(-rows.upper_of(i), y[i + 1], fused(-rows.fill_of(i), before, y[i]));
        bad = bad || !(y[0] * T(0) + x * T(0) == T(0));  // y[0] is that of the first one of its rows, or rests on it
        __syncwarp();
        const int from = there ? others : R;
#pragma unroll
        for (int i = 0; i < R; ++i)
            if (i >= from) d[i] = y[i];
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the copy engine will read x
        const bool all = !__any_sync(~0u, bad && there);
        if (!all) {
            for (int k = lane; k < job.flags; k += 32) flags[k] = 0;
            __syncwarp();
            if (bad && there) flags[ring] = 1;
            __syncwarp();
        }
        for (int k = lane; k < run.systems; k += 32) {
            const bool marked = !all && flags[k];
            job.marks[run.system + k] = marked;
            if (marked) atomicAdd(job.handed_over, 1ull);
        }
        __syncwarp();
        store_run(job, run, first, all, flags, lane);
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");  // the buffer of the turn before is free
        __syncwarp();
#pragma unroll
        for (int s = 0; s + 2 < Stages; ++s) ahead[s] = ahead[s + 1];
        load(ahead[Stages - 2] = draws.next(), stage ? stage - 1 : Stages - 1);
        if (++stage == Stages) stage = 0, parity ^= 1;
    }
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
}

}  // namespace trifold::cuda
