// SPDX-License-Identifier: BSD-3-Clause
// A batch whose systems have one and the same matrix, as its kernels see it.
#pragma once

#include <cstdint>

#include "backends/cuda/runtime/opening.hpp"
#include "backends/cuda/tridiagonal/block/tile_order.hpp"

namespace trifold::cuda {

/// lower, diag or upper of the one matrix: an array, or the same number in every row where `data` is null.
template <class T>
struct SharedBand {
    const T* data = nullptr;
    T value = 0;
    std::int64_t row_stride = 0;

#ifdef __CUDACC__
    __device__ __forceinline__ T operator[](int row) const { return data ? data[row * row_stride] : value; }
#endif
};

/// Element (row i, level indices j[]) of rhs or x is data[i row_stride + Σ j[] level_stride[]].
template <class T>
struct SharedOperand {
    T* data = nullptr;
    std::int64_t row_stride = 0, level_stride[4] = {};
};

/// How columns come into shared memory (column_sets.cuh).
enum class ColumnCopies : std::uint8_t { elements, vectors, rows, lines, tensors };  // tensors: bands only (column_tensors.cuh)

/// Elements that a row may begin behind its place in shared memory, as it does behind a boundary of so many in device memory.
template <class T>
constexpr int column_slack(ColumnCopies copies) {
    return copies == ColumnCopies::rows ? 16 / static_cast<int>(sizeof(T)) : copies >= ColumnCopies::lines ? 128 / static_cast<int>(sizeof(T)) : 0;
}

/// Systems are numbered with the last level fastest; there are fewer than 2^31.
template <class T>
struct SharedJob {
    SharedBand<T> lower, diag, upper;
    SharedOperand<T> rhs, x;
    int rows = 0, levels = 0;                   ///< levels ≥ 1
    bool adds = false;                          ///< x is added to: as where it lies in rhs, nothing of a marked system may be stored
    unsigned extent[4] = {1, 1, 1, 1}, systems = 0;
    unsigned char* marks = nullptr;             ///< per system 1 where it was handed over, else 0
    unsigned long long* handed_over = nullptr;  ///< number of systems marked
    const unsigned long long* wanted = nullptr; ///< bands: zero where nothing is to be done; null: all
    unsigned* tickets = nullptr;                ///< draws so far
    unsigned* cleared = nullptr;                ///< bands: blocks that have cleared their part of the marks
    Opening opening;                            ///< of the outcome that handed_over and tickets are of
    unsigned draw = 0;                          ///< tiles of a draw; 0: every so many tiles are one's own

    // Cut for one kernel. Systems lie in lines: those that differ in the last level, or all where lines are of no use.
    unsigned tiles = 0, tiles_per_line = 0, line_extent = 1;
    TileOrder order;                 ///< columns that come and go as tensors: of the sets, where there is one level only
    const T *lowest = nullptr, *highest = nullptr; ///< of rhs, its end excluded; what is between may be read

    int across = 0, segments = 0;    ///< columns: threads side by side, a power of two, and segments of a column
    unsigned set_columns = 0;        ///< columns: systems of a set ≤ across; with `whole_sectors` from one set to the next
    bool lines = false;              ///< columns: a set's are of one line
    bool closed = false;             ///< systems are rings: lower's first row and upper's last one couple their ends
    std::uint8_t lanes = 1, lane_rows = 1;  ///< rows that are rings': lanes of a ring, rows of each but the last one
    int slack = 0;                   ///< columns: column_slack of `copies`
    unsigned plane_rows = 0;         ///< copies as tensors: rows from one index of an outer level to the next; 0 where there is none
    bool whole_sectors = false;      ///< columns: sets overlap, and each stores whole sectors of 32 bytes
    unsigned turns = 0;              ///< columns that are not drawn: sets of a block, the same for all, some of them beyond the last one
    int cluster = 1;                 ///< columns: blocks in step; bands: blocks that share columns
    int joined = 0;                  ///< bands: 2^joined columns of a set are joined by one block for all (band_gather.cuh); 0: all columns by every block
    ColumnCopies copies = ColumnCopies::elements;

    int groups = 1, pitch = 0;       ///< rows: systems of a warp's run, and rows from one to the next ≥ rows
    int parts = 1;                   ///< rows: warps of a system
    bool merged = false;             ///< rows: the systems of a run follow each other without gaps, in rhs and in x
    bool spans = false;              ///< rows: a run is read as a whole, with the few elements between its systems
    bool touch = false;              ///< rows: sectors of x that are written in part are asked for beforehand
    bool gaps = false;               ///< rows: something may lie between the systems of a run, or be read behind it
    std::int64_t rhs_apart = 0, x_apart = 0; ///< rows: strides of the last level
    int flags = 0;                   ///< rows: bytes, one per system of a run
};

}  // namespace trifold::cuda
