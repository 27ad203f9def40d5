// SPDX-License-Identifier: BSD-3-Clause
// How the kernel that walks down columns (march.cuh) reads and stores those that lie side by side: a slice of 16 rows at one request, lanes along the columns.
#pragma once

#include "backends/cuda/tridiagonal/block/columns_kernel.cuh"
#include "backends/cuda/tridiagonal/shared/march.cuh"

namespace trifold::cuda {

/// A lane has V columns.
template <class T_, int V_, bool Shifted>
struct MarchSideBySide {
    using T = T_;
    static constexpr int V = V_, apart = Shifted ? 32 : 1, slice_rows = column_chunk, slices = march_rows / slice_rows, requests = slices;
    using S = SliceLayout<T, slice_rows, 32, V, Shifted>;
    using Two = typename ColumnVector<T>::type;
    static constexpr int elements = slices * S::operand;  ///< of a chunk
    static constexpr bool stored_by_copies = false, in_step = true;

    const ColumnJob<T>& job;
    ColumnPlace place;
    int own;                ///< column of the tile
    std::int64_t column;
    bool full;              ///< all rows of a lane's columns are its own, and a vector's where they are side by side
    bool twos;              ///< what it stores are vectors: sectors begin at even columns
    unsigned offset = 0;
    unsigned own_rows[V];   ///< of a slice, that the lane stores: tiles that overlap store whole sectors of 32 bytes, since a part of one costs more than its bytes
    static constexpr unsigned sector = 32 / sizeof(T);
    static_assert(slice_rows % sector == 0);

    __device__ __forceinline__ MarchSideBySide(const ColumnJob<T>& from, const ColumnPlace& at, int lane) : job(from), place(at), own(Shifted ? lane : lane * V), column(at.column + own) {
        const bool sectors = job.cut.columns < 32 * V;
        // Of rows that begin in a sector a tile leaves its part to the tile before, and takes what is left of their last one from the tile behind. Sixteen rows on, sectors begin where they did.
        const auto begin = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(column_corner(job.operand[4], place, place.column, 0)) / sizeof(T)), step = static_cast<unsigned>(job.operand[4].row_stride);
        const bool any_before = sectors && place.column > 0, any_behind = sectors && place.column + job.cut.columns < job.columns;
#pragma unroll
        for (int v = 0; v < V; ++v) {
            const int of = own + v * apart, last = of - job.cut.columns;
            own_rows[v] = 0;
#pragma unroll
            for (int i = 0; i < slice_rows; ++i) {
                const int at = static_cast<int>(-(begin + i * step) % sector);
                own_rows[v] |= static_cast<unsigned>(column + v * apart < job.columns && (!any_before || of >= at) && (!any_behind || last < at)) << i;
            }
        }
        twos = V == 2 && !Shifted && job.x_by_twos && column + 1 < job.columns;
        full = !sectors && (V == 1 || Shifted || job.x_by_twos);
#pragma unroll
        for (int v = 0; v < V; ++v) full = full && own_rows[v] == (1u << slice_rows) - 1;
        if (Shifted) offset = static_cast<unsigned>(offset_in_vector(column_corner(job.operand[3], place, place.column, 0)));
    }
    /// Nothing of these columns is stored: bit v.
    __device__ __forceinline__ void leave(unsigned columns) {
        full = full && !columns, twos = twos && !columns;
#pragma unroll
        for (int v = 0; v < V; ++v)
            if (columns >> v & 1) own_rows[v] = 0;
    }
    /// The v-th one of a lane, in its tile.
    static __device__ __forceinline__ int column_of(int lane, int v) { return (Shifted ? lane : lane * V) + v * apart; }

    /// By one thread: `requests` arrivals.
    __device__ __forceinline__ void ask(int chunk, T* to, Arrival news) const {
#pragma unroll 1
        for (int s = 0; s < slices; ++s)
            load_slice<T, slice_rows, 32, V, Shifted>(job, place, place.column, chunk * march_rows + s * slice_rows, to + s * S::operand - 3 * S::operand, news);
    }

    /// Where row i of a slice is.
    struct Rows {
        T* at[S::offsets];
        __device__ __forceinline__ T* operator[](int i) const { return at[i % S::offsets] + i / S::offsets * S::pitch; }
    };
    __device__ __forceinline__ Rows rows_of(T* slice) const {
        Rows rows;
#pragma unroll
        for (unsigned o = 0; o < S::offsets; ++o) rows.at[o] = slice + own + o * S::region + (offset + o * static_cast<unsigned>(job.operand[3].row_stride)) % S::offsets;
        return rows;
    }
    __device__ __forceinline__ void read(T* chunk, int s, T (&to)[slice_rows][V]) const {
        const Rows rows = rows_of(chunk + s * S::operand);
#pragma unroll
        for (int i = 0; i < slice_rows; ++i) {
            if constexpr (V == 2 && !Shifted) {
                const Two two = *reinterpret_cast<const Two*>(rows[i]);
                to[i][0] = two.x, to[i][1] = two.y;
            } else {
#pragma unroll
                for (int v = 0; v < V; ++v) to[i][v] = rows[i][v * apart];
            }
        }
    }
    __device__ __forceinline__ void write(T* chunk, int s, const T (&from)[slice_rows][V]) const {
        const Rows rows = rows_of(chunk + s * S::operand);
#pragma unroll
        for (int i = 0; i < slice_rows; ++i) {
            if constexpr (V == 2 && !Shifted) {
                *reinterpret_cast<Two*>(rows[i]) = {from[i][0], from[i][1]};
            } else {
#pragma unroll
                for (int v = 0; v < V; ++v) rows[i][v * apart] = from[i][v];
            }
        }
    }

    /// Sixteen rows of x, from row `first` on.
    __device__ __forceinline__ void store(T*, int, int first, const T (&x)[slice_rows][V]) const {
        const TileOperand<T>& to = job.operand[4];
        T* there = column_corner(to, place, column, first);
        const int rows = job.rows - first;
        if (full && rows >= slice_rows) {
#pragma unroll
            for (int i = 0; i < slice_rows; ++i, there += to.row_stride) {
                if constexpr (V == 2 && !Shifted) {
                    __stcs(reinterpret_cast<Two*>(there), Two{x[i][0], x[i][1]});
                } else {
#pragma unroll
                    for (int v = 0; v < V; ++v) __stcs(there + v * apart, x[i][v]);
                }
            }
            return;
        }
        if (rows <= 0 || !(own_rows[0] | own_rows[V - 1])) return;
        const unsigned some = rows < slice_rows ? (1u << rows) - 1 : ~0u;
#pragma unroll
        for (int i = 0; i < slice_rows; ++i, there += to.row_stride) {
            if (twos) {
                if (own_rows[0] & some & 1u << i) __stcs(reinterpret_cast<Two*>(there), Two{x[i][0], x[i][V - 1]});
                continue;
            }
#pragma unroll
            for (int v = 0; v < V; ++v)
                if (own_rows[v] & some & 1u << i) __stcs(there + v * apart, x[i][v]);
        }
    }
    __device__ __forceinline__ void send(int, T*) const {}
};

}  // namespace trifold::cuda
