// SPDX-License-Identifier: BSD-3-Clause
// One matrix, many systems whose rows lie side by side:   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i],   a, b, c the same in all.
//
// Shapes and strides: job.hpp; rhs and x have row_stride 1. x may be rhs; nothing else is overwritten but the marks.
// Who does what: a warp has a run of up to 32 R rows, one system's, several short ones' one after the other (zero couplings at the
//   seams), or a part of a long one; lane l has rows l R … of every run, always the same rows of the matrix. So it eliminates them
//   once, while the first runs arrive, and keeps their factors in registers (segment.cuh, lanes.cuh); the parts of a long system,
//   one per warp of a block, are joined by join.cuh. The copy engine brings runs into a ring of `stages` buffers and takes them back
//   from there; a run starts at the same offset from a 16-byte boundary in shared memory as in global memory.
// Words per row: 1 read, 1 written. R is odd: lanes read from different banks.
// Numerics: segment.cuh. Where the matrix is not safe every system is marked and nothing is stored. What is not finite is found at
//   the ends of a lane's rows: the systems that have rows in that lane are marked and not stored.
#pragma once

#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/shared/draws.cuh"
#include "backends/cuda/tridiagonal/shared/join.cuh"
#include "backends/cuda/tridiagonal/shared/lanes.cuh"
#include "backends/cuda/tridiagonal/shared/runs.cuh"

namespace trifold::cuda {

inline constexpr int most_shared_parts = 8;

/// Shared memory of a block, in bytes from its start; one ring of buffers per warp.
template <class T, int R, int Stages, bool Aside = false>
struct RowsLayout {
    static constexpr int line = 128 / static_cast<int>(sizeof(T));
    static constexpr int buffer = (32 * R + 2 * line - 2) / line * line;  ///< elements: a run begins anywhere in a line
    int ring, links, ends, join, aside, flags, total;

    /// front: bytes before the buffers that may be read.
    __host__ __device__ RowsLayout(int warps, int parts, int flags_each, int front = 0) {
        ring = warps * Stages * 8 + front + 127 & ~127;
        links = ring + (warps * Stages * buffer * static_cast<int>(sizeof(T)) + 15 & ~15);
        ends = links + (parts > 1 ? 4 * parts * static_cast<int>(sizeof(T)) : 0);
        join = ends + (parts > 1 ? 8 * parts * static_cast<int>(sizeof(T)) : 0);
        join = join + 15 & ~15;
        aside = join + (parts > 1 ? 4 * parts * static_cast<int>(sizeof(T)) : 0);
        flags = aside + (Aside ? parts * LanesAside<T, R>::words * static_cast<int>(sizeof(T)) : 0);
        total = flags + warps * flags_each;
    }
};

/// Aside: what joins the lanes is in shared memory.
template <class T, int R, int Stages, bool Couple, bool Aside, int Threads, int Blocks, bool Adds = false>
__global__ void __launch_bounds__(Threads, Blocks) solve_shared_rows(const __grid_constant__ SharedJob<T> job) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    job.opening.open();
    using Layout = RowsLayout<T, R, Stages, Aside>;
    extern __shared__ __align__(128) int4 shared[];
    unsigned char* const memory = reinterpret_cast<unsigned char*>(shared);
    const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) >> 5, warps = static_cast<int>(blockDim.x) >> 5;
    const Layout layout(warps, job.parts, job.flags);
    const unsigned barriers = shared_address(memory) + static_cast<unsigned>(warp * Stages * 8);
    T* const ring = reinterpret_cast<T*>(memory + layout.ring) + warp * Stages * Layout::buffer;
    const int first_row = Couple ? warp * 32 * R : 0;
    __shared__ unsigned drawn;
    Draws<Couple> draws(job.tickets, job.draw, job.tiles, &drawn, lane);
    const int part_rows = min(job.rows - first_row, 32 * R);

    for (int i = lane; i < Stages * Layout::buffer; i += 32) ring[i] = 0;
    if (lane < Stages) Arrival{barriers + 8 * static_cast<unsigned>(lane)}.prepare(1);
    asm volatile("fence.mbarrier_init.release.cluster;\n\tfence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    const auto load = [&](unsigned tile, int stage) {
        if (Adds && tile < job.tiles) prefetch_runs<adding<T>(Adds, Couple)>(job, run_of(job, tile, first_row, part_rows), lane);
        if (tile < job.tiles) load_run(job, run_of(job, tile, first_row, part_rows), ring + stage * Layout::buffer, barriers + 8 * static_cast<unsigned>(stage), lane);
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    unsigned ahead[Stages - 1];  // the tiles that are on their way
#pragma unroll
    for (int s = 0; s < Stages - 1; ++s) load(ahead[s] = draws.given(), s);

    // The matrix: through the buffer that is still free, so that memory is read along rows.
    struct {
        T a[R], b[R], c[R];
        T inverses[R], lowers[R], uppers[R], fills[R];
        std::conditional_t<(R > 32), std::uint64_t, unsigned> exists;
        __device__ T lower(int i) const { return a[i]; }
        __device__ T diag(int i) const { return b[i]; }
        __device__ T upper(int i) const { return c[i]; }
        __device__ bool real(int i) const { return exists >> i & 1; }
        __device__ void set(int i, T inverse, T lower, T upper, T fill) { inverses[i] = inverse, lowers[i] = lower, uppers[i] = upper, fills[i] = fill; }
    } rows;
    const int end = Couple ? part_rows : (job.groups - 1) * job.pitch + job.rows;
    const auto walk = [&](int from, int by, auto visit) {  // rows of the run: its row, or that of the matrix, or what is not one
        int row = Couple ? from : from % job.pitch;
        const int wrapped = Couple ? by : by % job.pitch;
#pragma unroll
        for (int i = 0; i < R; ++i) {
            visit(i, first_row + row, from + i * by < end && row < job.rows);
            row += wrapped;
            if (!Couple && row >= job.pitch) row -= job.pitch;
        }
    };
    walk(lane, 32, [&](int i, int row, bool real) {
        rows.a[i] = real && row > 0 ? job.lower[row] : T(0);
        rows.b[i] = real ? job.diag[row] : T(1);
        rows.c[i] = real && row + 1 < job.rows ? job.upper[row] : T(0);
    });
    const auto exchange = [&](T (&values)[R]) {
        T* const through = ring + (Stages - 1) * Layout::buffer;
#pragma unroll
        for (int i = 0; i < R; ++i) through[i * 32 + lane] = values[i];
        __syncwarp();
#pragma unroll
        for (int i = 0; i < R; ++i) values[i] = through[lane * R + i];
        __syncwarp();
    };
    exchange(rows.a), exchange(rows.b), exchange(rows.c);
    rows.exists = 0;
    walk(lane * R, 1, [&](int i, int, bool real) { rows.exists |= static_cast<decltype(rows.exists)>(real) << i; });
    SegmentEnds<T> ends;
    bool safe = factor_segment<R, R>(rows, ends);
    LaneJoin<T> lanes;
    safe = lanes.factor(ends, rows.real(R - 1), lane) && safe;
    T* const links = reinterpret_cast<T*>(memory + layout.links);
    auto* const join = reinterpret_cast<Join<T>*>(memory + layout.join);
    if constexpr (Couple) {
        auto* const all_ends = reinterpret_cast<SegmentEnds<T>*>(memory + layout.ends);
        if (lane == 31) all_ends[warp] = ends;
        __syncthreads();
        if (threadIdx.x == 0) safe = factor_join(all_ends, job.parts, join) && safe;
        safe = __syncthreads_and(safe);
    } else {
        safe = __all_sync(~0u, safe && (lane < 31 || fabs(lanes.inverse) <= shared_limit<T>));
    }
    // Not coupled, all warps have the same.
    const LanesAside<T, R> aside{reinterpret_cast<T*>(memory + layout.aside) + (Couple ? warp * LanesAside<T, R>::words : 0) + lane};
    if (Aside && (Couple || warp == 0)) aside.put(rows.inverses, lanes);
    const auto joined = [&] {
        if constexpr (Aside) return aside.join();
        else return lanes;
    };
    const auto inverse = [&](int i) { return Aside ? aside.inverse(i) : rows.inverses[i]; };
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
    for (int i = lane; i < Layout::buffer; i += 32) ring[(Stages - 1) * Layout::buffer + i] = 0;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();

    unsigned char* const flags = memory + layout.flags + warp * job.flags;
    int stage = 0;
    unsigned parity = 0, turn = 0;
    for (unsigned tile; (tile = ahead[0]) < job.tiles;) {
        draws.ask();
        const Run<T> run = run_of(job, tile, first_row, part_rows);
        T* const first = ring + stage * Layout::buffer + run.shift;
        T* const d = first + lane * R;
        asm volatile("cp.async.wait_group %0;" ::"n"(Stages - 2) : "memory");
        Arrival{barriers + 8 * static_cast<unsigned>(stage)}.wait(parity);
        __syncwarp();
        if (job.gaps) {
            clear_gaps(job, run, first, lane);
            __syncwarp();
        }
        T y[R];
#pragma unroll
        for (int i = 0; i < R; ++i) y[i] = d[i];
        y[0] *= inverse(0);
#pragma unroll
        for (int i = 1; i < R; ++i) y[i] = fused(-rows.lowers[i], y[i - 1], i < R - 1 ? y[i] * inverse(i) : y[i]);
        T z = y[R - 2];
#pragma unroll
        for (int i = R - 3; i >= 0; --i) z = fused(-rows.uppers[i], z, y[i]);

        T last = y[R - 1], before = 0, x;
        bool bad = false;
        if constexpr (Couple) {
            const T g = joined().reduce(last, z), head = joined().first_row(g, z, lane);
            T* const link = links + turn * 2 * job.parts;
            turn ^= 1;
            if (lane == 31) link[2 * warp] = g, link[2 * warp + 1] = head;
            __syncthreads();
            T gamma[most_shared_parts];
#pragma unroll
            for (int s = 0; s < most_shared_parts; ++s)
                if (s < job.parts) {
                    const Join<T> j = join[s];
                    const T next = s + 1 < job.parts ? link[2 * s + 3] : T(0);
                    gamma[s] = fused(-j.coupling, next, link[2 * s]) * j.inverse;
                    if (s) gamma[s] = fused(-j.lower, gamma[s - 1], gamma[s]);
                }
            T x_part = 0, follows = 0;
#pragma unroll
            for (int s = most_shared_parts - 1; s >= 0; --s)
                if (s < job.parts) {
                    follows = fused(-join[s].upper, follows, gamma[s]);
                    if (s == warp) x_part = follows;
                    if (s + 1 == warp) before = follows;
                }
            x = joined().substitute(g, x_part, before, lane);
        } else {
            // Others must not suffer from what is not finite here.
            bad = !(last * T(0) + z * T(0) == T(0));
            const T g = joined().reduce(bad ? T(0) : last, bad ? T(0) : z);
            x = joined().substitute(g, g * joined().inverse, T(0), lane);
        }
        const T left = __shfl_up_sync(~0u, x, 1);
        if (lane) before = left;
        y[R - 1] = x;
#pragma unroll
        for (int i = R - 2; i >= 0; --i) y[i] = fused(-rows.uppers[i], y[i + 1], fused(-rows.fills[i], before, y[i]));
        bad = bad || !(y[0] * T(0) + x * T(0) == T(0));
#pragma unroll
        for (int i = 0; i < R; ++i) d[i] = y[i];
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the copy engine will read x
        bool all;
        if constexpr (Couple) {
            draws.tell();
            all = !__syncthreads_or(bad);
            if (warp == 0 && lane == 0) {
                job.marks[run.system] = !all;
                if (!all) atomicAdd(job.handed_over, 1ull);
            }
        } else {
            all = !__any_sync(~0u, bad);
            if (Adds) __syncwarp();  // others will read x
            if (!all) {
                for (int k = lane; k < job.flags; k += 32) flags[k] = 0;
                __syncwarp();
                if (bad)
                    for (int k = lane * R / job.pitch; k <= (lane * R + R - 1) / job.pitch && k < run.systems; ++k) flags[k] = 1;
                __syncwarp();
            }
            for (int k = lane; k < run.systems; k += 32) {
                const bool marked = !all && flags[k];
                job.marks[run.system + k] = marked;
                if (marked) atomicAdd(job.handed_over, 1ull);
            }
        }
        if (all || !Couple) store_run<adding<T>(Adds, Couple)>(job, run, first, all, flags, lane);
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
