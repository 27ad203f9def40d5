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
//   rate. Where a block cannot hold that many columns, two blocks share them (bands.cuh), and in place neighbouring blocks are kept in step instead. Rows that begin anywhere
//   cost the second-level cache requests for parts of lines: pieces are wider, and where x lies apart from rhs sets overlap by less
//   than a sector of 32 bytes, so that each stores whole ones.
// Numerics: segment.cuh. Where the matrix is not safe every system is marked and nothing is stored. A right-hand side or an
//   intermediate value that is not finite leaves x[first] or x[last] of some segment not finite: that column is marked and not stored.
#pragma once

#include "backends/cuda/tridiagonal/block/store_rows.cuh"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/shared/column_sets.cuh"
#include "backends/cuda/tridiagonal/shared/draws.cuh"
#include "backends/cuda/tridiagonal/shared/ring_join.cuh"
#include "backends/cuda/tridiagonal/shared/segment_rows.cuh"

namespace trifold::cuda {

/// Shared memory of a block, in elements from its start.
template <class T, int R>
struct ColumnsLayout {
    static constexpr int vector = 16 / static_cast<int>(sizeof(T));
    static constexpr int segment = 4 * R + vector;  ///< apart from each other by other banks
    int factors, ends, join, last, first, flags, total;  ///< the set comes first

    __host__ __device__ ColumnsLayout(int segments, int across, int slack, bool closed = false) {
        factors = segments * R * (across + slack);
        ends = factors + segments * segment;
        join = ends + segments * 8;
        last = join + segments * (closed ? 6 : 4);
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

/// By all threads of the block: the matrix becomes factors and what joins the segments. Behind it, of every thread: whether what it did is safe.
template <int R, bool Closed = false, class T>
__device__ __forceinline__ bool eliminate_matrix(const SharedJob<T>& job, T* factors, SegmentEnds<T>* ends, Join<T>* join) {
    constexpr int segment = ColumnsLayout<T, R>::segment;
    const int thread = static_cast<int>(threadIdx.x);
    for (int r = thread; r < job.segments * R; r += static_cast<int>(blockDim.x)) {
        T* const at = factors + r / R * segment + r % R;
        const bool real = r < job.rows;
        at[0] = real ? job.diag[r] : T(1);
        at[R] = real && (Closed || r) ? job.lower[r] : T(0);
        at[2 * R] = real && (Closed || r + 1 < job.rows) ? job.upper[r] : T(0);
    }
    __syncthreads();
    bool safe = true;
    if (thread < job.segments) {
        SegmentInShared<T, R> rows{factors + thread * segment, job.rows - thread * R};
        SegmentEnds<T> own;
        if constexpr (Closed) {
            const int there = min(rows.rows, R);
            const T last_lower = rows.lower(there - 1);
            safe = factor_segment<R, 4>(rows, own, there);
            if (there < R) stretch_factors<R>(rows, there, last_lower);
        } else {
            safe = factor_segment<R, 4>(rows, own);
        }
        ends[thread] = own;
    }
    __syncthreads();
    if (thread == 0) {
        if constexpr (Closed) safe = factor_ring_join(ends, job.segments, join) && safe;
        else safe = factor_join(ends, job.segments, join) && safe;
    }
    return safe;
}

/// A thread's rows: right-hand sides become unknowns; the last one of them is returned. Closed: of a ring, of whose segment so many rows are there. Few: with few registers.
template <bool Closed = false, bool Few = false, class T, int R>
__device__ __forceinline__ T solve_rows(const T* own, const Join<T>* join, T* last, T* first, int segment, int segments, int across, T (&y)[R], int rows = R) {
    eliminate_rows(own, y);
    T x, before = 0;
    if constexpr (Closed) {
        if (rows < R) stretch_rows(rows, y);
        const T z = first_of_rows(own, y);
        last[segment * across] = y[R - 1], first[segment * across] = z;
        __syncthreads();
        if (segment == 0) solve_ring_join<(Few ? 8 : 16) / sizeof(T)>(join, last, first, segments, across);
        __syncthreads();
        x = last[segment * across];
        before = last[(segment ? segment - 1 : segments - 1) * across];
    } else if (segments > 1) {
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
    return x;
}

/// By all threads of the block: whether some thread has something bad; then a thread's `bad` becomes its column's. flag: the column's, zero before and after.
template <class T>
__device__ __forceinline__ bool any_bad(bool& bad, T* flag, bool clears) {
    if (!__syncthreads_or(bad)) return false;
    if (bad) *flag = 1;
    __syncthreads();
    bad = *flag != T(0);
    __syncthreads();
    if (clears) *flag = 0;
    __syncthreads();
    return true;
}

/// A thread's rows of its column; where sets overlap, whole sectors. Streamed: lines leave the cache first, which is a point or two slower in single precision and for halves of columns,
/// and as much faster for whole ones in double along y. (Measured.)
template <ColumnCopies Copies, bool Streamed, bool Adds = false, class T, int R>
__device__ __forceinline__ void store_column(const SharedJob<T>& job, const ColumnSet& set, const T (&y)[R], int first_row = 0) {
    const int column = static_cast<int>(threadIdx.x) & (job.across - 1), segment = static_cast<int>(threadIdx.x) / job.across;
    const int row = first_row + segment * R, own_rows = min(job.rows - row, R);
    T* at = place(job, job.x, set.system + static_cast<unsigned>(column)) + static_cast<std::int64_t>(row) * job.x.row_stride;
    if constexpr (Adds) {
        add_rows_to<R, R <= 16>(at, job.x.row_stride, own_rows, [&](int i) { return y[i]; });
    } else if (Copies != ColumnCopies::vectors && job.whole_sectors) {
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
            if (i < own_rows) {
                if constexpr (Streamed) __stcs(at, y[i]);
                else *at = y[i];
            }
            advance(at, job.x.row_stride);
        }
    }
}

/// Before every turn, where the plan says so: pairs of neighbours.
template <class T>
__device__ __forceinline__ void keep_step(const SharedJob<T>& job) {
    if (job.cluster > 1) asm volatile("barrier.cluster.arrive.relaxed.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}

/// Closed: columns are rings, of which lower's first row and upper's last one couple the ends.
template <class T, int R, ColumnCopies Copies, int Threads, int Blocks, bool Closed = false, bool Adds = false>
__global__ void __launch_bounds__(Threads, Blocks) solve_shared_columns(const __grid_constant__ SharedJob<T> job) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) int4 shared[];
    __shared__ unsigned long long arrival;
    __shared__ unsigned drawn[2];
    T* const memory = reinterpret_cast<T*>(shared);
    job.opening.open();
    const int thread = static_cast<int>(threadIdx.x);
    const int across = job.across, segments = job.segments, column = thread & (across - 1), segment = thread / across;
    const ColumnsLayout<T, R> layout(segments, across, offset_end<Copies>(job), Closed);
    ColumnSets<T, R, Copies> sets(job, memory, shared_address(&arrival));
    sets.load(sets.source(blockIdx.x));

    T* const factors = memory + layout.factors;
    auto* const join = reinterpret_cast<Join<T>*>(memory + layout.join);
    T *const last = memory + layout.last + column, *const first = memory + layout.first + column, *const flags = memory + layout.flags;
    if (segment == 0) first[segments * across] = flags[column] = 0;
    bool safe = eliminate_matrix<R, Closed>(job, factors, reinterpret_cast<SegmentEnds<T>*>(memory + layout.ends), join);
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

        const T x = solve_rows<Closed, column_slack<T>(Copies) != 0 || (sizeof(T) == 4 && R == 64)>(own, join, last, first, segment, segments, across, y, job.rows - segment * R);

        const ColumnSet set = set_of(job, draws.now);
        const bool there = column < set.columns;
        // What is not finite has reached the segment's first row, or its last.
        bool bad = there && !(y[0] * T(0) + x * T(0) == T(0));
        draws.tell();
        any_bad(bad, flags + column, segment == 0);
        if (there && segment == 0 && column < set.own) {
            job.marks[set.system + static_cast<unsigned>(column)] = bad;
            if (bad) atomicAdd(job.handed_over, 1ull);
        }
        if (there && !bad) store_column<Copies, sizeof(T) == 8, Adds>(job, set, y);
    }
#endif
}

}  // namespace trifold::cuda
