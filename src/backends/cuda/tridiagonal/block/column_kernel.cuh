// SPDX-License-Identifier: BSD-3-Clause
// A batch on chip whose columns lie side by side, a warp per column or run of them:   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i].
// For what columns_kernel.cuh does not take: few columns, few rows, any strides, more than 4096 rows.
//
// Shapes and strides: tile_job.hpp. x may be rhs; nothing else is overwritten.
// Who does what: a block has W columns side by side in shared memory (a, b, c, d), each up to 32 R rows, one column's or several short
//   systems one after the other; lane l of a column's warp takes rows l R … in registers and reduces them (thread/chunk.cuh), the warp joins its
//   lanes (warp/lanes.cuh). Where a column is longer, the blocks of a cluster tell each other their first and last unknown's relations through
//   distributed shared memory, and each solves for all of these. Lanes substitute, *check* their rows against what is still in
//   shared memory, put x in place of d, and the block stores it.
// Words per row of device memory: 4 read, 1 written. Lanes' rows lie an odd number of elements apart: no bank conflicts.
// Numerics: nothing is pivoted. Per lane, and per system within it, max|rhs - A x| ≤ accept × max|diag| × max|x| (neighbours' x too), else the whole
//   system is marked and not stored: what is stored has a backward error that was seen, whatever the matrix. Marked
//   systems are for a pivoted kernel. A neighbour that shares a lane with a system that is not finite may be marked too.
#pragma once

#include <cooperative_groups.h>

#include "backends/cuda/tridiagonal/block/column_load.cuh"
#include "backends/cuda/tridiagonal/thread/largest.cuh"
#include "backends/cuda/tridiagonal/warp/lanes.cuh"

namespace trifold::cuda {

template <class T>
inline constexpr T limit = sizeof(T) == 8 ? T(1e290) : T(1e30);

/// What elimination must not see: lower of first rows, upper of last rows, and rows that do not exist, which become x = 0.
/// By `threads` threads, a multiple of W.
template <int R, int W, class T>
__device__ __forceinline__ void close_systems(const TileJob<T>& job, const TilePlace& place, T* a, T* b, T* c, T* d, int thread, int threads) {
    const bool top = place.first_row == 0, bottom = place.first_row + place.rows == job.rows;
    const auto nothing = [&](int at) { a[at] = 0, b[at] = 1, c[at] = 0, d[at] = 0; };
    for (int k = thread; k < place.columns; k += threads) {
        const int first = k / W * job.pitch, w = k % W;
        if (top) a[element<R, W>(first, w)] = 0;
        if (bottom) c[element<R, W>(first + place.rows - 1, w)] = 0;
        if (k + W < place.columns)
            for (int row = place.rows; row < job.pitch; ++row) nothing(element<R, W>(first + row, w));
    }
    const int w = thread % W, groups = (place.columns - w + W - 1) / W;
    const int end = groups > 0 ? (groups - 1) * job.pitch + place.rows : 0;
    for (int row = end + thread / W; row < (end + R - 1) / R * R; row += threads / W) nothing(element<R, W>(row, w));
}

template <class T, int R, int W, bool Couple, int Threads, int Blocks>
__global__ void __launch_bounds__(Threads, Blocks) solve_columns(const __grid_constant__ TileJob<T> job) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // batch_refuses keeps others away
    namespace cg = cooperative_groups;
    extern __shared__ int4 shared[];
    const int thread = static_cast<int>(threadIdx.x), lane = thread & 31, warp = thread >> 5, warps = static_cast<int>(blockDim.x) >> 5;
    const int blocks = Couple ? job.blocks : 1;
    const int rank = Couple && blocks > 1 ? static_cast<int>(cg::this_cluster().block_rank()) : 0;

    T* const tiles = reinterpret_cast<T*>(shared);
    T* const scratch = tiles + 4 * job.tile_elements;
    const bool few = blocks <= 8;
    const int coupling_words = few ? WarpRows<T>::few_words : 0;  // many share the memory of their own rows
    T* const couplings = scratch + warps * WarpRows<T>::words;
    T* const links = couplings + (Couple ? warps * coupling_words : 0);
    unsigned char* const bad = reinterpret_cast<unsigned char*>(links + (Couple ? 6 * W * blocks : 0));

    const unsigned tile = Couple ? blockIdx.x / static_cast<unsigned>(blocks) : blockIdx.x;
    const auto place_of = [&](unsigned number) {
        TilePlace place;
        const unsigned run = job.one_run ? 0 : number / job.tiles_per_run, rest = job.one_run ? 0 : run / job.outer_extent[2];
        place.column = static_cast<std::int64_t>(number - run * job.tiles_per_run) * (job.groups * W);
        place.columns = static_cast<int>(min(static_cast<std::int64_t>(job.groups * W), job.columns - place.column));
        place.outer[2] = run - rest * job.outer_extent[2];
        place.outer[0] = rest / job.outer_extent[1];
        place.outer[1] = rest - place.outer[0] * job.outer_extent[1];
        place.first_row = Couple ? rank * job.block_rows : 0;
        place.rows = max(min(job.block_rows, job.rows - place.first_row), 0);
        if (place.rows == 0) place.columns = 0;
        return place;
    };
    const TilePlace place = place_of(tile);
    if constexpr (Couple)
        if (blocks > 1) asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");  // all blocks must run before they write to each other
    T* at[4];
    T* const corners = corner(job, job.operand[min(lane & 7, 4)], place);
    const Walk walk(place.columns);
#pragma unroll
    for (int k = 0; k < 4; ++k) at[k] = tiles + k * job.tile_elements;
    load_columns<R, W>(job, place, tiles, corners, walk);
    if (job.ahead && tile + job.ahead < job.tiles) {
        const TilePlace later = place_of(tile + job.ahead);
        prefetch_columns(job, later, corner(job, job.operand[min(lane & 7, 4)], later));
    }
    for (int k = thread; k < job.flags; k += static_cast<int>(blockDim.x)) bad[k] = 0;
    await_copies();
    __syncthreads();
    close_systems<R, W>(job, place, at[0], at[1], at[2], at[3], thread, static_cast<int>(blockDim.x));
    __syncthreads();

    const int w = warp, start = lane * R;
    const int groups = (place.columns - w + W - 1) / W;
    const int end = groups > 0 ? (groups - 1) * job.pitch + place.rows : 0;
    const bool active = start < end;
    const T* const a = at[0] + element<R, W>(start, w);
    const T* const b = at[1] + element<R, W>(start, w);
    const T* const c = at[2] + element<R, W>(start, w);
    T* const d = at[3] + element<R, W>(start, w);

    Chunk<T, R> rows;
    bool broken = false;  // its own rows will tell, others must not suffer
    if (active) {
#pragma unroll
        for (int i = 0; i < R; ++i) rows.eliminate(i, a[i * W], b[i * W], c[i * W], d[i * W]);
        rows.reduce();
        const T sum = fabs(rows.a[0]) + fabs(rows.c[0]) + fabs(rows.d[0]) + fabs(rows.a[R - 1]) + fabs(rows.c[R - 1]) + fabs(rows.d[R - 1]);
        broken = finite_or_zero(sum) != sum;
    }
    if (!active || broken) rows.a[0] = rows.c[0] = rows.d[0] = rows.a[R - 1] = rows.c[R - 1] = rows.d[R - 1] = 0;
    WarpRows<T> joined(scratch + warp * WarpRows<T>::words);
    Relation<T> warp_first;
    const Relation<T> warp_last = joined.template reduce<Couple>(rows.first(), rows.last(), lane, warp_first);

    T before = 0, after = 0, x_warp = warp_last.d;
    if constexpr (Couple) {
        T* const link = links + w * 6 * blocks;
        if (blocks > 1) asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
        if (lane < blocks) {
            T* const to = (blocks > 1 ? cg::this_cluster().map_shared_rank(link, lane) : link) + rank * 6;
            to[0] = warp_last.a, to[1] = warp_last.c, to[2] = warp_last.d;
            to[3] = warp_first.a, to[4] = warp_first.c, to[5] = warp_first.d;
        }
        if (blocks > 1) cg::this_cluster().sync();
        else __syncthreads();
        Relation<T> their_first{T(0), T(0), T(0)}, their_last = their_first;
        if (lane < blocks) {
            const T* const from = link + lane * 6;
            their_last = {from[0], from[1], from[2]};
            their_first = {from[3], from[4], from[5]};
        }
        T left, x;
        if (few) {
            x = WarpRows<T>(couplings + warp * coupling_words, true).template solve<true>(their_first, their_last, lane, left);
        } else {
            T* const memory = scratch + warp * WarpRows<T>::words;
            T saved[4];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                if (lane + 32 * i < WarpRows<T>::words) saved[i] = memory[lane + 32 * i];
            __syncwarp();
            x = WarpRows<T>(memory).template solve<false>(their_first, their_last, lane, left);
            __syncwarp();
#pragma unroll
            for (int i = 0; i < 4; ++i)
                if (lane + 32 * i < WarpRows<T>::words) memory[lane + 32 * i] = saved[i];
            __syncwarp();
        }
        before = __shfl_sync(~0u, left, rank);
        x_warp = __shfl_sync(~0u, x, rank);
        // The unknown after mine, from the next warp's first relation.
        const Relation<T> next = of_lane(their_first, rank + 1 < 32 ? rank + 1 : 31);
        const T x_next = __shfl_sync(~0u, x, rank + 1 < 32 ? rank + 1 : 31);
        if (rank + 1 < blocks) after = fused(-next.c, x_next, fused(-next.a, x_warp, next.d));
    }
    T left;
    const T mine = joined.substitute(before, x_warp, lane, left);
    {
        // The unknown after the lane's last one.
        const Relation<T> next{__shfl_down_sync(~0u, rows.a[0], 1), __shfl_down_sync(~0u, rows.c[0], 1), __shfl_down_sync(~0u, rows.d[0], 1)};
        const T x_next = __shfl_down_sync(~0u, mine, 1);
        if (lane < 31) after = fused(-next.c, x_next, fused(-next.a, mine, next.d));
    }

    unsigned failed = 0;  // bit i: the rows up to i that belong to the same system
    if (active) {
        unsigned ends = 1u << (R - 1);  // bit i: row i is the last one of its system, or of the padding after it
        if (place.first_row + place.rows == job.rows) {
            const int p = start - static_cast<int>(static_cast<unsigned>(start) * job.pitch_inverse >> 20) * job.pitch;
            for (int i = job.pitch - 1 - p; i < R; i += job.pitch) ends |= 1u << i;
            if (job.pitch != place.rows)
                for (int i = place.rows - 1 - p; i < R; i += job.pitch)
                    if (i >= 0) ends |= 1u << i;
        }
        T previous = left, own = rows.x(0, left, mine);
        Largest<T> defect, diag, largest;
        if (a[0] != T(0)) largest.add(left);
#pragma unroll
        for (int i = 0; i < R; ++i) {
            const T next = i + 1 < R ? rows.x(i + 1, left, mine) : after, b_i = b[i * W];
            if (i == R - 1 && c[i * W] != T(0)) largest.add(next);
            defect.add(fused(-c[i * W], next, fused(-a[i * W], previous, fused(-b_i, own, d[i * W]))));
            diag.add(b_i);
            largest.add(own);
            d[i * W] = own;
            if (ends >> i & 1) {
                const T allowed = job.accept * diag.value() * largest.value();
                if (!(defect.value() <= allowed && allowed < limit<T>)) failed |= 1u << i;
                defect = {}, diag = {}, largest = {};
            }
            previous = own, own = next;
        }
        if (broken) failed |= ends;
        for (unsigned rest = failed; rest; rest &= rest - 1) {
            const int system = min((start + __ffs(static_cast<int>(rest)) - 1) / job.pitch, groups - 1) * W + w;
            if (Couple && blocks > 1) {
                for (int k = 0; k < blocks; ++k) *cg::this_cluster().map_shared_rank(bad + system, k) = 1;
            } else {
                bad[system] = 1;
            }
        }
    }
    bool all;
    if (Couple && blocks > 1) {
        cg::this_cluster().sync();
        all = !__syncthreads_or(thread < job.flags ? bad[thread] : 0);
    } else {
        all = !__syncthreads_or(failed != 0);
    }

    const auto keep = [&](int column) { return !bad[column]; };
    store_columns<R, W>(job, place, at[3], corners, walk, all, keep);
    if (rank == 0) {
        unsigned char* const marks = job.marks + (place.column * job.column_weight + place.outer[0] * job.outer_weight[0] +
                                                  place.outer[1] * job.outer_weight[1] + place.outer[2] * job.outer_weight[2]);
        for (int k = thread; k < place.columns; k += static_cast<int>(blockDim.x)) {
            marks[k * job.column_weight] = bad[k];
            if (bad[k]) atomicAdd(job.handed_over, 1ull);
        }
    }
#endif
}

}  // namespace trifold::cuda
