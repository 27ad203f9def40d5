// SPDX-License-Identifier: BSD-3-Clause
// One matrix, many columns side by side:   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i],   a, b, c the same in every column.
//
// Shapes and strides: job.hpp. x may be rhs; nothing else is overwritten but the marks.
// Who does what: a block has `across` columns; a thread has R consecutive rows of one of them in registers, its warp's lanes lie side
//   by side. The block eliminates the matrix (segment.cuh, join.cuh) into shared memory, once, while the first right-hand sides
//   arrive, and then takes one set of columns after another. Threads read the factors of their rows from shared memory, the same
//   ones in all lanes; the last rows of the segments are joined by one thread per column. While a set is solved the next one is
//   on its way into shared memory (column_sets.cuh).
// Words per row: 1 read, 1 written. Pieces of rows should have 256 bytes or more: with 128 the memory is a tenth slower (measured on an
//   H200). Blocks draw their sets from a counter, so that what lies side by side is under way at the same time: 3 to 7 % of the memory's
//   rate. Where a block cannot hold that many columns, neighbouring blocks are kept in step as a cluster instead. Rows that begin anywhere
//   cost the second-level cache requests for parts of lines: pieces are wider, and where x lies apart from rhs sets overlap by less
//   than a sector of 32 bytes, so that each stores whole ones.
// Numerics: segment.cuh. Where the matrix is not safe every system is marked and nothing is stored. A right-hand side or an
//   intermediate value that is not finite leaves x[first] or x[last] of some segment not finite: that column is marked and not stored.
#pragma once

#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/shared/column_sets.cuh"
#include "backends/cuda/tridiagonal/shared/draws.cuh"
#include "backends/cuda/tridiagonal/shared/join.cuh"
#include "backends/cuda/tridiagonal/shared/segment_rows.cuh"

namespace trifold::cuda {

/// Shared memory of a block, in elements from its start.
template <class T, int R>
struct ColumnsLayout {
    static constexpr int vector = 16 / static_cast<int>(sizeof(T));
    static constexpr int segment = 4 * R + vector;  ///< apart from each other by other banks
    int factors, ends, join, last, first, flags, total;  ///< the set comes first

    __host__ __device__ ColumnsLayout(int segments, int across, int slack) {
        factors = segments * R * (across + slack);
        ends = factors + segments * segment;
        join = ends + segments * 8;
        last = join + segments * 4;
        first = last + segments * across;
        flags = first + (segments + 1) * across;
        total = flags + across + vector;
    }
};

/// Factors of a segment in shared memory, where its rows are before.
template <class T, int R>
struct SegmentInShared {
    T* at;
    int rows;
    __device__ T diag(int i) const { return at[i]; }
    __device__ T lower(int i) const { return at[R + i]; }
    __device__ T upper(int i) const { return at[2 * R + i]; }
    __device__ bool real(int i) const { return i < rows; }
    __device__ void set(int i, T inverse, T lower, T upper, T fill) { at[i] = inverse, at[R + i] = lower, at[2 * R + i] = upper, at[3 * R + i] = fill; }
};

/// The unknowns of the last rows of one column's segments, by one thread: they replace their right-hand sides `last`.
template <class T>
__device__ __forceinline__ void solve_join(const Join<T>* join, T* last, const T* first, int segments, int across) {
    constexpr int at_once = 16 / sizeof(T);  // loads that do not wait for each other
    T gamma = 0, next = 0;
#pragma unroll 1
    for (int s = 0; s < segments; s += at_once) {
        T end[at_once], begin[at_once];
        Join<T> j[at_once];
#pragma unroll
        for (int k = 0; k < at_once; ++k)
            if (s + k < segments) end[k] = last[(s + k) * across], begin[k] = first[(s + k + 1) * across], j[k] = join[s + k];
#pragma unroll
        for (int k = 0; k < at_once; ++k)
            if (s + k < segments) {
                gamma = fused(-j[k].lower, gamma, fused(-j[k].coupling, begin[k], end[k]) * j[k].inverse);
                last[(s + k) * across] = gamma;
            }
    }
#pragma unroll 1
    for (int s = segments - 1; s >= 0; s -= at_once) {
        T end[at_once], upper[at_once];
#pragma unroll
        for (int k = 0; k < at_once; ++k)
            if (s >= k) end[k] = last[(s - k) * across], upper[k] = join[s - k].upper;
#pragma unroll
        for (int k = 0; k < at_once; ++k)
            if (s >= k) {
                next = fused(-upper[k], next, end[k]);
                last[(s - k) * across] = next;
            }
    }
}

/// A thread's rows of its column; where sets overlap, whole sectors.
template <ColumnCopies Copies, class T, int R>
__device__ __forceinline__ void store_column(const SharedJob<T>& job, const ColumnSet& set, const T (&y)[R]) {
    const int column = static_cast<int>(threadIdx.x) & (job.across - 1), segment = static_cast<int>(threadIdx.x) / job.across;
    const int own_rows = min(job.rows - segment * R, R);
    T* at = place(job, job.x, set.system + static_cast<unsigned>(column)) + static_cast<std::int64_t>(segment * R) * job.x.row_stride;
    if (Copies != ColumnCopies::vectors && job.whole_sectors) {
        // From the first sector that begins in the set to the first one that begins where the next set does.
        constexpr unsigned sector = 32 / sizeof(T);
        unsigned left = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(at - column) / sizeof(T)), right = left + static_cast<unsigned>(set.own);
        const int from = set.before ? column : static_cast<int>(sector), to = set.own == set.columns ? -1 : column - set.own;
#pragma unroll
        for (int i = 0; i < R; ++i) {
            if (i < own_rows && from >= static_cast<int>(0u - left & sector - 1) && to < static_cast<int>(0u - right & sector - 1)) __stcs(at, y[i]);
            advance(at, job.x.row_stride);
            left += static_cast<unsigned>(job.x.row_stride), right += static_cast<unsigned>(job.x.row_stride);
        }
    } else {
#pragma unroll
        for (int i = 0; i < R; ++i) {
            if (i < own_rows) __stcs(at, y[i]);
            advance(at, job.x.row_stride);
        }
    }
}

/// Before every turn, where the plan says so: pairs of neighbours.
template <class T>
__device__ __forceinline__ void keep_step(const SharedJob<T>& job) {
    if (job.cluster > 1) asm volatile("barrier.cluster.arrive.relaxed.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}

template <class T, int R, ColumnCopies Copies, int Threads, int Blocks>
__global__ void __launch_bounds__(Threads, Blocks) solve_shared_columns(const __grid_constant__ SharedJob<T> job) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) int4 shared[];
    __shared__ unsigned long long arrival;
    __shared__ unsigned drawn[2];
    T* const memory = reinterpret_cast<T*>(shared);
    job.opening.open();
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    const int across = job.across, segments = job.segments, column = thread & (across - 1), segment = thread / across;
    const ColumnsLayout<T, R> layout(segments, across, offset_end<Copies>(job));
    ColumnSets<T, R, Copies> sets(job, memory, shared_address(&arrival));
    sets.load(sets.source(blockIdx.x));

    // The matrix.
    T* const factors = memory + layout.factors;
    auto* const ends = reinterpret_cast<SegmentEnds<T>*>(memory + layout.ends);
    auto* const join = reinterpret_cast<Join<T>*>(memory + layout.join);
    T *const last = memory + layout.last + column, *const first = memory + layout.first + column, *const flags = memory + layout.flags;
    for (int r = thread; r < segments * R; r += threads) {
        T* const at = factors + r / R * layout.segment + r % R;
        const bool real = r < job.rows;
        at[0] = real ? job.diag[r] : T(1);
        at[R] = real && r ? job.lower[r] : T(0);
        at[2 * R] = real && r + 1 < job.rows ? job.upper[r] : T(0);
    }
    if (segment == 0) first[segments * across] = flags[column] = 0;
    __syncthreads();
    bool safe = true;
    if (thread < segments) {
        SegmentInShared<T, R> rows{factors + thread * layout.segment, job.rows - thread * R};
        SegmentEnds<T> own;
        safe = factor_segment<R, 4>(rows, own);
        ends[thread] = own;
    }
    __syncthreads();
    if (thread == 0) safe = factor_join(ends, segments, join) && safe;
    await_the_kernel_before();
    if (thread == 0) job.opening.enter();
    if (!__syncthreads_and(safe)) {
        sets.abandon();
        mark_all(job);
        return;
    }

    const T* const own = factors + segment * layout.segment;
    SetDraws draws(job, drawn);
    for (; draws.any(); draws.next()) {
        keep_step(job);
        draws.ask();
        T y[R];
        const auto next = sets.source(draws.after);
        sets.take(draws.now, draws.turn & 1, y);
        sets.load(next);
        if (Copies != ColumnCopies::vectors && job.whole_sectors) sets.touch(draws.after);

        eliminate_rows(own, y);
        T x, before = 0;
        if (segments > 1) {
            const T z = first_of_rows(own, y);
            last[segment * across] = y[R - 1], first[segment * across] = z;
            __syncthreads();
            if (segment == 0) solve_join(join, last, first, segments, across);
            __syncthreads();
            x = last[segment * across];
            if (segment) before = last[(segment - 1) * across];
        } else {
            x = y[R - 1] * join[0].inverse;
        }
        y[R - 1] = x;
        substitute_rows(own, before, y);

        const ColumnSet set = set_of(job, draws.now);
        const bool there = column < set.columns;
        // What is not finite has reached the segment's first row, or its last.
        bool bad = there && !(y[0] * T(0) + x * T(0) == T(0));
        draws.tell();
        if (__syncthreads_or(bad)) {
            if (bad) flags[column] = 1;
            __syncthreads();
            bad = flags[column] != T(0);
            __syncthreads();
            if (segment == 0) flags[column] = 0;
            __syncthreads();
        }
        if (there && segment == 0 && column < set.own) {
            job.marks[set.system + static_cast<unsigned>(column)] = bad;
            if (bad) atomicAdd(job.handed_over, 1ull);
        }
        if (there && !bad) store_column<Copies>(job, set, y);
    }
#endif
}

}  // namespace trifold::cuda
