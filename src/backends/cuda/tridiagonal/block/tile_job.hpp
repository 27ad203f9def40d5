// SPDX-License-Identifier: BSD-3-Clause
// A batch as the tile kernels see it: one level whose systems become columns of tiles, up to three levels around it.
#pragma once

#include <cstdint>

#include "backends/cuda/runtime/opening.hpp"

namespace trifold::cuda {

/// One operand. Element (row i, column j, outer indices o[]) is data[i row_stride + j column_stride + Σ o[] outer_stride[]].
template <class T>
struct TileOperand {
    enum class Path : std::uint8_t {
        scalar,   ///< `value` everywhere
        elements, ///< any strides, one element at a time
        vectors,  ///< width 1: whole runs of rows, by the copy engine
    };
    T* data = nullptr;
    T value = 0;
    std::int64_t row_stride = 0, column_stride = 0, outer_stride[3] = {};
    Path path = Path::scalar;
    std::int64_t tile_stride = 0;  ///< from tile to tile, where there are no outer levels
};

/// A tile is what a warp (width 1: rows lie side by side) or a block (width W: columns do, W of them per row of the tile, a warp
/// for each) has in shared memory: `groups` × width columns, in which the groups follow each other as one long column.
/// Where a column is longer than a warp takes, its parts of `block_rows` rows are coupled: width 1, by the `warps` of each of `blocks`
/// blocks of a cluster; width W, by the `blocks`. Then groups = 1.
template <class T>
struct TileJob {
    std::int64_t columns = 0;
    unsigned tiles_per_run = 0;                 ///< ceil(columns / (groups width))
    unsigned outer_extent[3] = {1, 1, 1};
    unsigned tiles = 0;
    int rows = 0, block_rows = 0;               ///< of a column; of a part of it
    int pitch = 0;                              ///< rows from group to group ≥ block_rows
    int groups = 1, warps = 1, blocks = 1;
    int tile_elements = 0;                      ///< of shared memory per operand, a multiple of 16 bytes
    unsigned pitch_inverse = 0;                 ///< 2^20 / pitch, rounded up: divides what is below 1024 exactly
    unsigned long long long_inverse = 0;        ///< 2^32 / pitch, rounded up: the same below 2048, width 1
    bool one_run = false;                       ///< no outer levels
    int last_elements = 0;                      ///< the same of a block's last warp, where parts are coupled and width is 1
    int flags = 0;                              ///< bytes, one per system of a tile
    unsigned ahead = 0;                         ///< tiles: a block asks the second-level cache for the tile so many after its own
    bool spans = false;                         ///< width 1: a tile of each of the four operands is one run of memory
    bool span_stored = false, runs_stored = false;  ///< and so is one of x; it lies as the operands do, if with gaps
    bool even = false;                          ///< all that is not kept are spans, one after the other at `tile_stride`
    bool merged = false;                        ///< width 1 and the systems of a tile follow each other without gaps
    TileOperand<T> operand[5];                  ///< lower, diag, upper, rhs, x
    bool adds = false;                          ///< x is added to, by kernels of their own
    T accept = 0;                               ///< accepted max|rhs - A x| over max|diag| max|x|
    unsigned char* marks = nullptr;             ///< per system 1 where it was handed over, else 0
    unsigned char* tile_marks = nullptr;        ///< width 1, null or per tile 1 where one of its systems was, else 0: then marks of its systems mean nothing
    std::int64_t column_weight = 0, outer_weight[3] = {};  ///< of the index into marks
    unsigned long long* handed_over = nullptr;  ///< number of systems marked
    int line = 128;                             ///< width 1: tiles keep their offset from so many bytes, a power of two ≥ 16
    unsigned* tickets = nullptr;                ///< width 1: draws so far
    Opening opening;                            ///< width 1: of the outcome that handed_over and tickets are of
    unsigned draws = 0;                         ///< of all
    unsigned draw = 1;                          ///< tiles per draw, one after the other; a power of two
    const unsigned long long* wanted = nullptr; ///< width 1: where it is not null, a word that is zero where another kernel has solved all
    unsigned kept = 0;                          ///< width 1: a bit for each of lower, diag, upper that is the same in all systems: a warp has it once for all its whole tiles

#ifdef __CUDACC__
    /// The tile whose turn it is: the last one second. It takes longer than others, which would wait for it at the end: it may have an end of its own, and code
    /// for it comes from memory.
    __device__ unsigned tile_of(unsigned turn) const { return turn - 1 >= tiles - 1 ? turn : turn == 1 ? tiles - 1 : turn - 1; }
    /// Whether a tile is whole, and memory before and after it belongs to the batch.
    __device__ bool within(unsigned tile) const { return even && tile - 1 < tiles - 2; }
    /// The same of the tile after `before`, which left behind what is kept.
    __device__ bool within_after(unsigned before, unsigned tile) const { return within(tile) && (kept == 0 || within(before)); }
#endif
};

}  // namespace trifold::cuda
