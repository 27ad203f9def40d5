// SPDX-License-Identifier: BSD-3-Clause
// Sets of columns on their way into shared memory, by one block: R rows per thread, the next set while one is being solved.
//
//   elements  one at a time (cp.async), any stride and alignment: a thread copies what it will take
//   vectors   16 bytes at a time (cp.async): a warp copies what its lanes will take
//   rows      pieces of rows by the copy engine (cp.async.bulk), widened to 16-byte boundaries where the array goes on, for columns
//             with stride 1 whose rows start anywhere; a set then has columns of one line of the last level only
//   lines     the same, each piece as it lies in a line of 128 bytes: else the engine asks for two halves of every line
#pragma once

#include "backends/cuda/tridiagonal/shared/place.cuh"

namespace trifold::cuda {

struct ColumnSet {
    unsigned system;  ///< number of the first one
    int columns;      ///< that exist; 0 beyond the last set
    int before;       ///< 1 where there is a set before it in its line, else 0
    int own;          ///< columns before those that are the next set's as well
};

template <class T>
__device__ __forceinline__ ColumnSet set_of(const SharedJob<T>& job, unsigned tile) {
    if (tile >= job.tiles) return {0, 0, 0, 0};
    const unsigned line = job.lines ? tile / job.tiles_per_line : 0, in_line = tile - line * job.tiles_per_line;
    const unsigned first = in_line * job.set_columns, most = job.whole_sectors ? static_cast<unsigned>(job.across) : job.set_columns;
    const int columns = static_cast<int>(min(most, job.line_extent - first));
    const bool last = in_line + 1 == job.tiles_per_line;
    return {line * job.line_extent + first, columns, first != 0 ? 1 : 0, last ? columns : static_cast<int>(job.set_columns)};
}

/// `column_slack`, in single precision as a number of the run: the kernel of 64 rows is a quarter faster with it than with the constant. In doubles it makes registers spill, and what has odd
/// pitches slower by as much. (Measured.)
template <ColumnCopies Copies, class T>
__device__ __forceinline__ int offset_end(const SharedJob<T>& job) {
    if constexpr (sizeof(T) == 4 && column_slack<T>(Copies) > 0) return job.slack;
    else return column_slack<T>(Copies);
}

/// Where sets overlap: asks for the sectors at the ends of a line, which nobody else fills.
template <class T>
__device__ __forceinline__ void touch_line_ends(const SharedJob<T>& job, unsigned tile, int first_row, int rows) {
    const ColumnSet set = set_of(job, tile);
    if (!set.columns) return;
    const T* const to = place(job, job.x, set.system) + first_row * job.x.row_stride;
#pragma unroll 1
    for (int row = static_cast<int>(threadIdx.x); row < rows; row += static_cast<int>(blockDim.x)) {
        const T* const at = to + row * job.x.row_stride;
        if (!set.before) ask_for_part_of_sector(at);
        if (set.own == set.columns) ask_for_part_of_sector(at + set.columns);
    }
}

template <class T, int R, ColumnCopies Copies>
struct ColumnSets {
    static constexpr int V = 16 / static_cast<int>(sizeof(T)), slack = column_slack<T>(Copies);
    const SharedJob<T>& job;
    T* const memory;
    T* const staged;  ///< of the warp: R × 32
    const unsigned barrier;
    const int lane;
    const int first_row, rows;  ///< that the block has of every column
    const bool dealt;           ///< copies of pieces are asked for by all warps alike

    __device__ __forceinline__ ColumnSets(const SharedJob<T>& job, T* memory, unsigned barrier) : ColumnSets(job, memory, barrier, 0, job.rows, false) {}
    __device__ __forceinline__ ColumnSets(const SharedJob<T>& job, T* memory, unsigned barrier, int first_row, int rows, bool dealt)
        : job(job), memory(memory), staged(memory + (threadIdx.x & ~31u) * R), barrier(barrier), lane(static_cast<int>(threadIdx.x) & 31), first_row(first_row), rows(rows), dealt(dealt) {
        // What no copy reaches is read too.
        const int elements = job.segments * R * pitch();
        for (int i = static_cast<int>(threadIdx.x); i < elements; i += static_cast<int>(blockDim.x)) memory[i] = 0;
        if (slack && threadIdx.x == 0) Arrival{barrier}.prepare(static_cast<int>(blockDim.x));
        asm volatile("fence.mbarrier_init.release.cluster;\n\tfence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
    }

    __device__ __forceinline__ int pitch() const { return job.across + offset_end<Copies>(job); }

    /// Where a thread's copies of a set begin. (Found before registers are full.)
    struct Source {
        const T* at;
        int rows;     ///< at most so many; none beyond the last set
        int columns;  ///< rows: of the set
    };

    __device__ __forceinline__ Source source(unsigned tile) const {
        const ColumnSet set = set_of(job, tile);
        if constexpr (slack > 0) return {place(job, job.rhs, set.system) + first_row * job.rhs.row_stride, rows, set.columns};
        // A lane copies for this one of its warp's threads, and for those after it.
        constexpr int each = Copies == ColumnCopies::vectors ? V : 1;
        const int copied = static_cast<int>(threadIdx.x & ~31u) + (lane * each & 31), column = copied & (job.across - 1);
        const int first = copied / job.across * R + (lane * each >> 5);
        const T* const at = place(job, job.rhs, set.system + static_cast<unsigned>(column)) + (first_row + first) * job.rhs.row_stride;
        return {at, column < set.columns ? rows - first : 0, 0};
    }

    __device__ __forceinline__ void touch(unsigned tile) const { touch_line_ends(job, tile, first_row, rows); }

    /// Enqueues the copies of a set.
    __device__ __forceinline__ void load(const Source& from) const {
        if constexpr (slack > 0) {
            load_rows(from);
        } else {
            constexpr int each = Copies == ColumnCopies::vectors ? V : 1;
            const unsigned target = shared_address(staged) + static_cast<unsigned>(lane * each * static_cast<int>(sizeof(T)));
            const std::int64_t step = each * job.rhs.row_stride;
            const T* at = from.at;
#pragma unroll
            for (int i = 0; i < R; i += each) {
                if (i < from.rows) {
                    if constexpr (Copies == ColumnCopies::vectors) copy_vector_async(target + static_cast<unsigned>(i * 32 * static_cast<int>(sizeof(T))), at);
                    else copy_async(target + static_cast<unsigned>(i * 32 * static_cast<int>(sizeof(T))), at);
                }
                advance(at, step);
            }
            asm volatile("cp.async.commit_group;" ::: "memory");
        }
    }

    /// Waits for the set and moves the thread's rows to registers; afterwards the next one may be loaded.
    __device__ __forceinline__ void take(unsigned tile, unsigned parity, T (&y)[R]) const {
        if constexpr (slack == 0) {
            await_copies();
            __syncwarp();
#pragma unroll
            for (int i = 0; i < R; ++i) y[i] = staged[i * 32 + lane];
            __syncwarp();
            return;
        }
        Arrival{barrier}.wait(parity);
        const ColumnSet set = set_of(job, tile);
        const int segment = static_cast<int>(threadIdx.x) / job.across, column = static_cast<int>(threadIdx.x) & (job.across - 1);
        const T* from = memory + segment * R * pitch() + column;
        const unsigned by = static_cast<unsigned>(job.rhs.row_stride), last = static_cast<unsigned>(offset_end<Copies>(job)) - 1;
        unsigned shift = first_offset(set) + static_cast<unsigned>(first_row + segment * R) * by;
#pragma unroll
        for (int i = 0; i < R; ++i) {
            y[i] = from[shift & last];
            from += pitch(), shift += by;
        }
        __syncthreads();
    }

    /// Before a block ends while its first set is on its way.
    __device__ __forceinline__ void abandon() const {
        if (slack) Arrival{barrier}.wait(0);
        await_copies();
    }

private:
    __device__ __forceinline__ unsigned first_offset(const ColumnSet& set) const {
        return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(place(job, job.rhs, set.system)) / sizeof(T));
    }

    __device__ __forceinline__ void load_rows(const Source& source) const {
        // A warp's copies are asked for one lane after the other.
        const int warps = static_cast<int>(blockDim.x) >> 5, thread = static_cast<int>(threadIdx.x);
        if (source.columns)
#pragma unroll 1
            for (int row = dealt ? lane * warps + (thread >> 5) : thread; row < source.rows; row += static_cast<int>(blockDim.x)) {
                const T* const from = source.at + row * job.rhs.row_stride;
                const int shift = offset_in_vector(from), whole = (shift + source.columns + V - 1) & ~(V - 1);
                T* const to = memory + row * pitch() + (static_cast<int>(reinterpret_cast<std::uintptr_t>(from) / sizeof(T)) & (offset_end<Copies>(job) - 1)) - shift;
                if (from - shift >= job.lowest && from - shift + whole <= job.highest) {
                    const unsigned now = static_cast<unsigned>(whole) * static_cast<unsigned>(sizeof(T));
                    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(now) : "memory");
                    Arrival{barrier}.copy(shared_address(to), from - shift, now);
                } else {
#pragma unroll 1
                    for (int k = 0; k < source.columns; ++k) to[shift + k] = from[k];
                }
            }
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
    }
};

}  // namespace trifold::cuda
