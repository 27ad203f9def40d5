// SPDX-License-Identifier: BSD-3-Clause
// A batch whose columns lie side by side, cut for the kernels that keep columns in registers (columns_kernel.cuh).
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/tridiagonal/block/tile_job.hpp"

namespace trifold::cuda {

/// A CUtensorMap, whose header belongs to the driver.
struct alignas(64) TensorMap {
    unsigned long long words[16];
};

inline constexpr int column_chunk = 16;  ///< rows of a lane

/// Threads of a block at most: of 128 KiB of rows.
template <class T>
inline constexpr int most_column_threads = 128 * 32 * 8 / static_cast<int>(sizeof(T)) / column_chunk;

/// How one operand is brought into shared memory.
enum class ColumnPath : std::uint8_t {
    scalar,    ///< not at all
    elements,  ///< any strides, one element at a time
    tensor,    ///< rows of 16-byte aligned pieces, by the copy engine
};

/// What a block does: `warps` warps, `across` of them side by side; a warp has lane_columns columns and 32 / lane_columns chunks of
/// each. Chunks of a column: those of the block's warps, then those of the next block of the cluster. A *slice* is what `share`
/// warps side by side have of the rows of one warp.
struct ColumnCut {
    int lane_columns = 32, share = 1;
    int chunks = 1;          ///< of a column, in a block
    int across = 1, warps = 1, blocks = 1;
    int columns = 32;        ///< of a tile: across lane_columns
    int slots = 1;           ///< slices that shared memory has room for: those of the tile in work, and of the next ones
    int slot_rows = 0;       ///< rows of a column in a slice, per chunk
    int clusters = 1;        ///< of `blocks` blocks each, as launched
    int slice_elements = 0;  ///< of shared memory
    int links_at = 0, ends_at = 0, barriers_at = 0, shared_bytes = 0;  ///< bytes

    // How the chunks of a column are joined, by fours: level_rows[l] rows from level_base[l] on. A block's fours, and theirs, while there are
    // more than one; then (level `meeting`) the blocks of the cluster; then theirs by fours, down to a single row.
    int quads = 0, levels = 0, meeting = 0, level_rows[6] = {}, level_base[7] = {};
};

template <class T>
struct ColumnJob {
    TensorMap maps[4];
    ColumnPath path[4] = {};
    unsigned tensor_bytes = 0;      ///< of a slice, by the copy engine
    bool elements = false;          ///< some operand goes by elements
    bool one_run = true;            ///< no outer levels
    bool deep = false;              ///< maps have five dimensions (columns, rows, three outer ones), else three
    ColumnCut cut;
    int rows = 0;
    std::int64_t columns = 0;
    unsigned tiles_per_run = 0, tiles = 0;
    unsigned outer_extent[3] = {1, 1, 1};
    TileOperand<T> operand[5];      ///< lower, diag, upper, rhs, x
    T accept = 0;                   ///< as in TileJob, and the rest too
    unsigned char* marks = nullptr;
    std::int64_t column_weight = 0, outer_weight[3] = {};
    unsigned long long* handed_over = nullptr;
};

/// Whether `job` (columns, rows, operands set) is for these kernels, and how it is cut.
template <class T>
bool cut_columns(const TileJob<T>& job, ColumnCut& cut);

/// Enqueues. Errors stay in the runtime's last error.
template <class T>
void solve_cut_columns(const TileJob<T>& job, const ColumnCut& cut, cudaStream_t stream);

/// Enqueues the kernel: clusters that stay until no tile is left.
template <class T>
void launch_columns(ColumnJob<T>& job, cudaStream_t stream);

}  // namespace trifold::cuda
