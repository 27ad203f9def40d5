// SPDX-License-Identifier: BSD-3-Clause
// A batch whose columns lie side by side, cut for the kernels that keep columns in registers (columns_kernel.cuh).
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/tridiagonal/block/column_rows.hpp"
#include "backends/cuda/tridiagonal/block/tensor_map.hpp"
#include "backends/cuda/tridiagonal/block/tile_job.hpp"
#include "backends/cuda/tridiagonal/block/tile_order.hpp"

namespace trifold::cuda {

inline constexpr int column_chunk = 16;  ///< rows of a lane

/// Threads of a multiprocessor: that many rows each are 128 KiB.
template <class T>
inline constexpr int column_threads = 2048 / static_cast<int>(sizeof(T));

/// Rows may begin anywhere: after so many of them they begin at the same offset from a 16-byte boundary, and those that do so are one map.
template <class T>
inline constexpr int row_offsets = 16 / static_cast<int>(sizeof(T));

/// What a tile is: whole columns; a segment of one that is too long for a cluster, by a block; a window of such a one, that overlaps with those around it; or whole rings, of which lower's first row and
/// upper's last one couple the ends.
enum class ColumnUse : std::uint8_t { whole, segments, windows, rings };

/// Where lower, diag and upper are. Own: every column has its own, in slices, or they are numbers, which fill slices once for all. Filled: so do those that are the same in all columns. Table: lower and
/// upper are the same in all columns, and a block has those of its rows in a table; slices have diag and rhs only. Line: all three are the same in the columns of a run, and slices have those of their rows once.
enum class ColumnBands : std::uint8_t { own, filled, table, line };

/// What a block does: `warps` warps, `across` of them side by side; a warp has lane_columns columns and 32 / lane_columns chunks of
/// each. Chunks of a column: those of the block's warps, then those of the next block of the cluster. A *slice* is what `share`
/// warps side by side have of the rows of one warp.
struct ColumnCut {
    int lane_columns = 32, share = 1;
    int resident = 1;        ///< blocks of a multiprocessor
    bool shifted = false;    ///< rows begin anywhere, else at 16-byte boundaries
    bool dominant = false;   ///< by columns_dominant.cuh: what is not dominant enough is marked
    ColumnUse use = ColumnUse::whole;
    ColumnBands bands = ColumnBands::own;
    int pieces = 1;          ///< slices of a lane, one below the other: more only where a warp has 32 lanes of columns
    int chunks = 1;          ///< of a column, in a block: a power of two
    int across = 1, warps = 1, blocks = 1;
    int columns = 32;        ///< of a tile: across lane_columns
    int slots = 1;           ///< slices that shared memory has room for: those of the tile in work, and of the next one or two
    int clusters = 1;        ///< of `blocks` blocks each, as launched
    int links_at = 0, ends_at = 0, answers_at = 0, votes_at = 0, barriers_at = 0, shared_bytes = 0;  ///< bytes; dominant: the table is where votes are else

    bool joined() const noexcept { return chunks > 1 || blocks > 1; }
};

/// What columns_dominant.cuh does with a tile: solves columns; or windows of longer ones, of which it stores what lies within their halos; or finds what segments tell others; or x of
/// segments, once that is known. Or it solves rings.
enum class ColumnPass { whole, windows, reduce, finish, rings };

/// Columns cut into segments, one after the other, or into windows that overlap; systems are numbered as marks are.
template <class T>
struct ColumnSegments {
    ColumnRows rows;
    std::int64_t systems = 0;
    unsigned* unsettled = nullptr;  ///< windows say here that they do not do: then segments are wanted. Null: there are no windows
    T* seams = nullptr;             ///< [seam][above x, x after it, max|x|, below x, x before it, max|x|][system]: what the windows on either side of it have found
    T* relations = nullptr;         ///< [segment][first a, c, d, last a, c, d][system]: Relation, of a segment's first unknown and of its last one
    const T* last = nullptr;        ///< [1 + segment][system]: its last unknown, in front of the first segment zeros; not a number where the system is not solved
    const T* after = nullptr;       ///< [segment][system]: the unknown after it
    const unsigned long long* marked = nullptr;  ///< systems that are not solved; more than `few`: none is
    unsigned long long few = 0;
    unsigned long long* few_marked = nullptr;    ///< the finishing pass says here how many are left to the pivoted path, and
    unsigned long long* all_left = nullptr;      ///< here windows_turn where all are left to others
};

template <class T>
struct ColumnJob {
    TensorMap maps[4][row_offsets<T>];  ///< per operand; shifted: of its rows r ≡ 0, 1, … modulo row_offsets, outer levels being more rows, else one
    unsigned slice_bytes = 0;       ///< of a slice, by the copy engine
    std::int64_t outer_rows[4][3] = {};  ///< shifted: rows from one index of an outer level to the next, per operand
    bool one_run = true;            ///< no outer levels
    TileOrder order;                ///< of the tiles of a run, where there is one run only
    bool deep = false;              ///< maps have five dimensions (columns, rows, three outer ones), else three
    ColumnCut cut;
    int rows = 0;
    std::int64_t columns = 0;
    unsigned tiles_per_run = 0, tiles = 0;
    unsigned outer_extent[3] = {1, 1, 1};
    TileOperand<T> operand[5];      ///< lower, diag, upper, rhs, x
    bool x_by_twos = false;         ///< two columns of x side by side are a vector wherever the first is an even one
    T accept = 0;                   ///< as in TileJob, and the rest too
    unsigned char* marks = nullptr;
    std::int64_t column_weight = 0, outer_weight[3] = {};
    unsigned long long* handed_over = nullptr;
    const unsigned long long* undecided = nullptr;  ///< where only marked columns are to be solved: their number
    unsigned long long few = 0, most = ~0ull;  ///< no more than so many, and more than so many, are handed over as they are
    const unsigned* beside = nullptr;  ///< null, or a word that is not zero where another kernel has all columns (columns_judge.hpp)
    unsigned* tickets = nullptr;    ///< may be null: then every block takes every so many tiles
    Opening opening;                ///< of the outcome that handed_over and tickets are of
    ColumnSegments<T> segments;
    TileOperand<T> fill[3];         ///< ColumnBands::filled: where lower, diag and upper come from that have no data above
};

/// A slice in shared memory: [operand][offset][row][column]. Shifted: `offsets` of rows, each in a region of its own, and rows 16 bytes longer. Bands as a table: of diag and rhs. Bands as a line: of rhs, and
/// [row][lower, diag, upper, nothing] behind it.
template <class T, int R, int L, int Share, bool Shifted, ColumnBands Bands = ColumnBands::own>
struct SliceLayout {
    static constexpr bool shared_couplings = Bands == ColumnBands::table, shared_bands = Bands == ColumnBands::line;
    static constexpr int offsets = Shifted ? row_offsets<T> : 1, rows = R * 32 / L, line = 128 / static_cast<int>(sizeof(T));
    static constexpr int pitch = L * Share + (Shifted ? row_offsets<T> : 0);
    static constexpr int region = (rows / offsets * pitch + line - 1) / line * line, operand = offsets * region;
    static constexpr int all = shared_bands ? operand + 4 * rows : (shared_couplings ? 2 : 4) * operand;
    static constexpr int diag = shared_couplings ? 0 : operand, rhs = shared_bands ? 0 : shared_couplings ? operand : 3 * operand, bands = operand;  ///< where they begin
};

/// Whether `job` (columns, rows, operands set) is for these kernels, and how it is cut. checked: not for columns_dominant.cuh.
template <class T>
bool cut_columns(const TileJob<T>& job, ColumnCut& cut, bool checked = false);

/// The same for longer columns: a tile is a segment of them.
template <class T>
bool cut_segments(const TileJob<T>& job, ColumnCut& cut);

/// The same, a tile being a window.
template <class T>
bool cut_windows(const TileJob<T>& job, ColumnCut& cut);

/// The same for rings, that are as long as columns are at most.
template <class T>
bool cut_rings(const TileJob<T>& job, ColumnCut& cut);

/// Where the matrix is not an operand (shared/march.cuh): slices of rhs alone.
template <class T>
bool cut_rhs(const TileJob<T>& job, ColumnCut& cut);

/// Rows of a window that others store, on either side: what is neglected is less than roundoff where unknowns are halved from row to row.
template <class T>
inline constexpr int window_halo = sizeof(T) == 8 ? 64 : 32;

/// Rows of a tile: of a segment or a window.
inline int tile_rows(const ColumnCut& cut) noexcept {
    return cut.blocks * cut.chunks * cut.pieces * column_chunk;
}

/// What the kernels of columns are launched with, but for `clusters`; false where the copy engine cannot take it (too many rows, if anything).
template <class T>
bool column_job(const TileJob<T>& from, const ColumnCut& cut, ColumnJob<T>& job);

/// Enqueues. undecided: a counter in the device's memory that is zero, for what columns_dominant.cuh leaves to the kernel that checks; without it that one has
/// all. most: as in ColumnJob. Errors are kept (runtime/launch_error.hpp).
template <class T>
void solve_cut_columns(const TileJob<T>& job, const ColumnCut& cut, unsigned long long* undecided, cudaStream_t stream, unsigned long long most = ~0ull);

/// Enqueues the kernel: clusters that stay until no tile is left.
template <class T>
void launch_columns(ColumnJob<T>& job, cudaStream_t stream);
template <class T>
void launch_adding_columns(ColumnJob<T>& job, cudaStream_t stream);
template <class T>
void launch_segments(ColumnJob<T>& job, ColumnPass pass, cudaStream_t stream);
template <class T>
void launch_rings(ColumnJob<T>& job, cudaStream_t stream);
template <class T>
void launch_shared_couplings(ColumnJob<T>& job, cudaStream_t stream);
template <class T>
void launch_columns_of_lines(ColumnJob<T>& job, cudaStream_t stream);

}  // namespace trifold::cuda
