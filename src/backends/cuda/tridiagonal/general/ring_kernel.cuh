// SPDX-License-Identifier: BSD-3-Clause
// Rings on chip:   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i],   x[-1] = x[n-1], x[n] = x[0],   for every system
//
// Shapes: as in pivoted_line.cuh; any strides. x may be d, or be added to. Overwritten: x.
// Who does what: a block has W rings in shared memory (a, b, c, d), a warp for each, up to 32 R rows of it; lane l takes rows l R … in registers and reduces
//   them (thread/chunk.cuh), the warp joins its lanes (warp/lanes.cuh) and closes the ring (ring_close.cuh). Where a ring is longer, the blocks of a cluster have
//   parts of it and tell each other what is left of them; each solves for all. Lanes substitute, *check* their rows against what is in shared memory, and
//   put x in place of d. What goes over to device memory and comes from it: lanes along rows where rows lie side by side, else along the rings.
// Words per row: 4 read, 1 written, one more read where it is added. Roof: memory; what is missing is that a block loads, computes and stores in turns.
// Numerics: nothing is pivoted. Per lane max|d - A x| ≤ accept max|b| max|x| (neighbours' x too), else the ring is marked and not stored. The first row and the last
//   one may miss as much again, of the lane at the other end. Marked ones are for ring_line.cuh. It comes behind ring_tiles.cuh, whose marked rings alone it takes.
#pragma once

#include <cooperative_groups.h>

#include <type_traits>

#include "backends/cuda/tridiagonal/block/copy_engine.cuh"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/general/ring_close.cuh"
#include "backends/cuda/tridiagonal/general/ring_job.hpp"
#include "backends/cuda/tridiagonal/thread/largest.cuh"

namespace trifold::cuda {

/// Beside the rows: what a block knows of its rings, and what blocks of a cluster tell each other.
template <class T, bool Couple>
struct alignas(16) RingMemory {
    static constexpr int W = rings_of_block;

    struct Arrays {
        Line<T> line[5];  ///< lower, diag, upper, rhs, x
        T right, left;
        bool there;
    };
    struct Told {
        Relation<T> first, last;
    };
    struct Parts {
        Told told[W][most_ring_blocks];
        Linear<T> end[W];
        T joins[W][WarpRows<T>::words];
    };
    struct Nothing {};

    T joins[W][WarpRows<T>::words];
    Arrays arrays[W];
    int bad[W];
    std::conditional_t<Couple, Parts, Nothing> parts;
};

/// Elements from ring to ring along rows: a gap after R rows keeps lanes out of each other's banks. Rings side by side take no more.
constexpr int ring_column(int rows) { return (rows + ring_chunk - 1) / ring_chunk * (ring_chunk + 1); }
constexpr int rings_elements(int rows) { return rings_of_block * ring_column(rows); }

/// Rings `first_ring` … of a cluster.
template <class T, bool Couple>
__device__ __forceinline__ void solve_rings_of(const RingJob<T>& job, std::int64_t first_ring) {
    namespace cg = cooperative_groups;
    using Memory = RingMemory<T, Couple>;
    constexpr int R = ring_chunk, W = rings_of_block, threads = 32 * W;
    extern __shared__ int4 shared[];
    Memory& memory = *reinterpret_cast<Memory*>(shared);
    const int thread = static_cast<int>(threadIdx.x), lane = thread & 31, w = thread >> 5, blocks = Couple ? job.blocks : 1;
    const int rank = Couple ? static_cast<int>(blockIdx.x) % blocks : 0;
    const int first_row = rank * 32 * R, rows = min(job.rows - first_row, 32 * R), filled = (rows + R - 1) / R * R, column = ring_column(min(job.rows, 32 * R));
    T* const tiles = reinterpret_cast<T*>(&memory + 1);
    const auto operand = [&](int m) { return tiles + m * W * column; };
    const bool along = job.along_rows;
    const int step = along ? 1 : W;  // from row to row
    const auto place = [&](int row, int ring) { return along ? ring * column + row + row / R : row * W + row / R + ring; };

    if (thread < W) {
        const std::int64_t k = min(first_ring + thread, job.levels.systems - 1);
        std::int64_t index[4];
        job.levels.indices(k, index);
        typename Memory::Arrays& of = memory.arrays[thread];
#pragma unroll
        for (int m = 0; m < 5; ++m) of.line[m] = line_of(job.operand[m], index);
        of.right = line_of(job.right, index)[0], of.left = line_of(job.left, index)[0];
        of.there = first_ring + thread < job.levels.systems && (!job.only_marked || job.marks[k]);
        memory.bad[thread] = 0;
    }
    if (!__syncthreads_or(thread < W && memory.arrays[thread].there)) return;  // all blocks of a cluster, then
    if (Couple) asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");  // all blocks must run before they write to each other
    // Calls visit(row, ring) for the rows `low` … `high` - 1 of the rings that are there.
    const auto each = [&](int low, int high, auto visit) {
        const int ring = along ? w : thread % W, begin = along ? lane : thread / W, stride = along ? 32 : threads / W;
        if (!memory.arrays[ring].there) return;
#pragma unroll 4
        for (int row = begin; row < high; row += stride)
            if (row >= low) visit(row, ring);
    };
    const bool top = first_row == 0, bottom = first_row + rows == job.rows;
#pragma unroll 1
    for (int m = 0; m < 4; ++m) {
        const int low = m == 0 && top, high = rows - (m == 2 && bottom);  // those two are corners
        if (!job.operand[m].data) {
            each(low, high, [&](int row, int ring) { operand(m)[place(row, ring)] = job.operand[m].value; });
            continue;
        }
        const unsigned to = shared_address(operand(m));
        each(low, high, [&](int row, int ring) {
            const Line<T>& from = memory.arrays[ring].line[m];
            copy_async(to + static_cast<unsigned>(place(row, ring) * sizeof(T)), from.data + (first_row + row) * from.row_stride);
        });
    }
    each(rows, filled, [&](int row, int ring) {  // they hand on what comes after them
        const int at = place(row, ring);
        operand(0)[at] = 0, operand(1)[at] = 1, operand(2)[at] = -1, operand(3)[at] = 0;
    });
    if (thread < W && memory.arrays[thread].there) {
        if (top) operand(0)[place(0, thread)] = memory.arrays[thread].right;
        if (bottom) operand(2)[place(rows - 1, thread)] = memory.arrays[thread].left;
    }
    await_copies();
    __syncthreads();

    const bool there = memory.arrays[w].there, active = there && lane * R < filled;
    const int start = place(lane * R, w);
    const T *const a = operand(0) + start, *const b = operand(1) + start, *const c = operand(2) + start;
    T* const d = operand(3) + start;
    Chunk<T, R> own;
    bool broken = false;
    if (active) {
#pragma unroll
        for (int i = 0; i < R; ++i) own.eliminate(i, a[i * step], b[i * step], c[i * step], d[i * step]);
        own.reduce();
        const T sum = fabs(own.a[0]) + fabs(own.c[0]) + fabs(own.d[0]) + fabs(own.a[R - 1]) + fabs(own.c[R - 1]) + fabs(own.d[R - 1]);
        broken = finite_or_zero(sum) != sum;
    }
    if (!active || broken) own.a[0] = own.d[0] = own.a[R - 1] = own.d[R - 1] = 0, own.c[0] = own.c[R - 1] = -1;
    const WarpRows<T> joined(memory.joins[w]);
    Relation<T> warp_first;
    const Relation<T> warp_last = joined.template reduce<true>(own.first(), own.last(), lane, warp_first);

    // The ring's last row, where this part has it.
    Linear<T> end{};
    if (bottom) {
        const LaneEnds<T> ends(joined, warp_last, lane);
        const int at = rows - 1, last = at % R;
        T a_end = 0, c_end = 0, d_end = 0;
#pragma unroll
        for (int i = 0; i + 1 < R; ++i)
            if (i == last) a_end = own.a[i], c_end = own.c[i], d_end = own.d[i];
        if (last == R - 1) {
            end = ends.own;
        } else {
            end.known = fused(-c_end, ends.own.known, fused(-a_end, ends.left.known, d_end));
            end.by_before = fused(-c_end, ends.own.by_before, -a_end * ends.left.by_before);
            end.by_after = fused(-c_end, ends.own.by_after, -a_end * ends.left.by_after);
        }
        end = end.from(at / R);
    }

    T before, after, x_warp;
    RingEnds<T> ring;
    if constexpr (!Couple) {
        ring = close_ring(warp_first, warp_last, end);
        before = ring.last, after = ring.first;
        x_warp = fused(-warp_last.c, after, fused(-warp_last.a, before, warp_last.d));
    } else {
        asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
        if (lane < blocks) {
            cg::this_cluster().map_shared_rank(&memory, lane)->parts.told[w][rank] = {warp_first, warp_last};
            if (bottom) cg::this_cluster().map_shared_rank(&memory, lane)->parts.end[w] = end;
        }
        cg::this_cluster().sync();
        Relation<T> first{T(0), T(-1), T(0)}, last = first;
        if (lane < blocks) first = memory.parts.told[w][lane].first, last = memory.parts.told[w][lane].last;
        const Linear<T> end_of_part = memory.parts.end[w];
        const WarpRows<T> of_parts(memory.parts.joins[w]);
        Relation<T> ring_first;
        const Relation<T> ring_last = of_parts.template reduce<true>(first, last, lane, ring_first);
        const Linear<T> previous = LaneEnds<T>(of_parts, ring_last, lane).own.from(blocks - 2);  // of the part before the last one
        Linear<T> whole;
        whole.known = fused(end_of_part.by_before, previous.known, end_of_part.known);
        whole.by_before = end_of_part.by_before * previous.by_before;
        whole.by_after = fused(end_of_part.by_before, previous.by_after, end_of_part.by_after);
        ring = close_ring(ring_first, ring_last, whole);
        T left;
        const T x = of_parts.substitute(ring.last, fused(-ring_last.c, ring.first, fused(-ring_last.a, ring.last, ring_last.d)), lane, left);
        before = __shfl_sync(~0u, left, rank), x_warp = __shfl_sync(~0u, x, rank);
        const int behind = min(rank + 1, blocks - 1);
        const Relation<T> next = of_lane(first, behind);
        after = fused(-next.c, __shfl_sync(~0u, x, behind), fused(-next.a, x_warp, next.d));
        if (bottom) after = ring.first;
    }
    T left;
    const T mine = joined.substitute(before, x_warp, lane, left);
    {
        const Relation<T> next{__shfl_down_sync(~0u, own.a[0], 1), __shfl_down_sync(~0u, own.c[0], 1), __shfl_down_sync(~0u, own.d[0], 1)};
        const T x_next = __shfl_down_sync(~0u, mine, 1);
        if (lane < 31) after = fused(-next.c, x_next, fused(-next.a, mine, next.d));
    }

    bool failed = broken;
    if (active) {
        T previous = left, x = own.x(0, left, mine);
        Largest<T> defect, diag, largest;
        largest.add(left), largest.add(after);
#pragma unroll
        for (int i = 0; i < R; ++i) {
            const T next = i + 1 < R ? own.x(i + 1, left, mine) : after;
            if (lane * R + i < rows) {
                defect.add(fused(-c[i * step], next, fused(-a[i * step], previous, fused(-b[i * step], x, d[i * step]))));
                diag.add(b[i * step]);
                largest.add(x);
                d[i * step] = x;
                // Both ends were found twice: what the rows beyond them have taken for them counts in those rows.
                if (bottom && lane * R + i == rows - 1) defect.add(memory.arrays[w].right * (ring.last - x));
                if (top && lane == 0 && i == 0) defect.add(memory.arrays[w].left * (ring.first - x));
            }
            previous = x, x = next;
        }
        constexpr T limit = sizeof(T) == 8 ? T(1e290) : T(1e30);
        const T allowed = job.accept * diag.value() * largest.value();
        failed |= !(defect.value() <= allowed && allowed < limit);
    }
    failed = __any_sync(~0u, failed);
    if (Couple) {
        if (failed && lane < blocks) cg::this_cluster().map_shared_rank(&memory, lane)->bad[w] = 1;
        cg::this_cluster().sync();
    } else {
        if (failed && lane == 0) memory.bad[w] = 1;
        __syncthreads();
    }
    const bool adds = job.adds;
    each(0, rows, [&](int row, int ring) {
        if (memory.bad[ring]) return;
        const Line<T>& to = memory.arrays[ring].line[4];
        T& x = to.at(first_row + row);
        x = adds ? x + operand(3)[place(row, ring)] : operand(3)[place(row, ring)];
    });
    if (rank == 0 && thread < W && memory.arrays[thread].there) {
        job.marks[first_ring + thread] = memory.bad[thread] != 0;
        if (memory.bad[thread]) atomicAdd(&job.outcome->marked, 1ull);
    }
}

template <class T, bool Couple>
__global__ void __launch_bounds__(32 * rings_of_block, sizeof(T) == 8 ? 2 : 3) ring_kernel(const __grid_constant__ RingJob<T> job) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // fits_on_chip keeps others away
    after_the_kernel_before();
    if (job.only_marked && *const_cast<volatile unsigned long long*>(&job.outcome->handed_over) == 0) return;
    const unsigned blocks = Couple ? static_cast<unsigned>(job.blocks) : 1;
    for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x / blocks) * rings_of_block; first < job.levels.systems; first += static_cast<std::int64_t>(gridDim.x / blocks) * rings_of_block) {
        solve_rings_of<T, Couple>(job, first);
        __syncthreads();
    }
#endif
}

}  // namespace trifold::cuda
