// SPDX-License-Identifier: BSD-3-Clause
#include <cuda.h>

#include <algorithm>
#include <cstdint>

#include "backends/cuda/tridiagonal/block/columns_job.hpp"

namespace trifold::cuda {
namespace {

using Encode = decltype(&cuTensorMapEncodeTiled);

Encode encoder() {
    static const Encode found = [] {
        void* function = nullptr;
        cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
        const bool good = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &result) == cudaSuccess;
        return good && result == cudaDriverEntryPointSuccess ? reinterpret_cast<Encode>(function) : nullptr;
    }();
    return found;
}

// The copy engine takes this operand: columns one element apart, all else a multiple of 16 bytes. Outer levels in any order.
template <class T>
bool aligned(const TileOperand<T>& operand, const unsigned (&outer_extent)[3]) {
    const auto fits = [](std::int64_t stride) {
        const std::int64_t bytes = stride * static_cast<std::int64_t>(sizeof(T));
        return bytes > 0 && bytes % 16 == 0 && bytes < std::int64_t{1} << 40;
    };
    if (operand.column_stride != 1 || reinterpret_cast<std::uintptr_t>(operand.data) % 16 || !fits(operand.row_stride)) return false;
    for (int l = 0; l < 3; ++l)
        if (outer_extent[l] > 1 && !fits(operand.outer_stride[l])) return false;
    return encoder() != nullptr;
}

template <class T>
bool encode(const ColumnJob<T>& job, const TileOperand<T>& operand, TensorMap& map) {
    if (!aligned(operand, job.outer_extent) || job.columns >= std::int64_t{1} << 31) return false;
    const std::int64_t strides[4] = {operand.row_stride, operand.outer_stride[2], operand.outer_stride[1], operand.outer_stride[0]};
    const cuuint64_t extents[5] = {static_cast<cuuint64_t>(job.columns), static_cast<cuuint64_t>(job.rows), job.outer_extent[2], job.outer_extent[1],
                                   job.outer_extent[0]};
    cuuint64_t bytes[4];
    for (int d = 0; d < 4; ++d) bytes[d] = d == 0 || extents[d + 1] > 1 ? static_cast<cuuint64_t>(strides[d]) * sizeof(T) : 16;
    const int lanes = job.cut.lane_columns;
    const cuuint32_t box[5] = {static_cast<cuuint32_t>(lanes * job.cut.share), static_cast<cuuint32_t>(job.cut.slot_rows * 32 / lanes), 1, 1, 1};
    const cuuint32_t one[5] = {1, 1, 1, 1, 1};
    return encoder()(reinterpret_cast<CUtensorMap*>(&map), sizeof(T) == 8 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT64 : CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
                     job.deep ? 5 : 3, operand.data, extents, bytes, box, one, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                     CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

// Rows of the levels above chunks.
void set_levels(ColumnCut& cut) {
    cut.quads = cut.levels = cut.meeting = 0;
    if (cut.chunks == 1 && cut.blocks == 1) return;
    cut.quads = (cut.chunks + 3) / 4;
    const auto add = [&](int rows) {
        cut.level_rows[cut.levels] = rows;
        cut.level_base[cut.levels + 1] = cut.level_base[cut.levels] + rows;
        ++cut.levels;
    };
    int rows = cut.quads;
    for (; rows > 1; rows = (rows + 3) / 4) add(rows), ++cut.meeting;
    rows = cut.blocks;
    for (add(rows); rows > 1; add(rows)) rows = (rows + 3) / 4;
}

// Where things lie in shared memory; false where a tile does not fit.
template <class T>
bool place_columns(ColumnCut& cut) {
    constexpr int block_bytes = 227 * 1024, most_slots = 64, size = static_cast<int>(sizeof(T));
    const int slices = cut.warps / cut.share, slice = cut.slot_rows * 32 * cut.share * 4 * size;
    const int links = cut.levels > 0 ? cut.chunks * 6 * cut.columns * size : 0, ends = cut.level_base[cut.levels] * 6 * cut.columns * size;
    const auto barriers = [&](int slots) { return (slots + 3 + cut.blocks) * 8; };  // of slots, of ends and votes; votes of this block and of all
    int slots = std::min((block_bytes - links - ends - barriers(most_slots)) / slice, most_slots);
    // Warps that do not wait for each other have a ring each: one that is ahead must not meet a slot of the one before.
    if (cut.levels == 0) slots = slots / slices * slices;
    cut.slots = slots;
    cut.slice_elements = slice / size;
    cut.links_at = slots * slice;
    cut.ends_at = cut.links_at + links;
    cut.barriers_at = cut.ends_at + ends;
    cut.shared_bytes = cut.barriers_at + barriers(slots);
    return slots >= slices;
}

// Outer levels of extent 1 come first, so that where only one is longer, it is the last.
template <class T>
void sort_outer_levels(ColumnJob<T>& job, const TileJob<T>& from) {
    int next = 2;
    for (const bool longer : {true, false})
        for (int l = 2; l >= 0; --l) {
            if ((from.outer_extent[l] > 1) != longer) continue;
            job.outer_extent[next] = from.outer_extent[l], job.outer_weight[next] = from.outer_weight[l];
            for (int k = 0; k < 5; ++k) job.operand[k].outer_stride[next] = from.operand[k].outer_stride[l];
            --next;
        }
    job.one_run = job.outer_extent[2] == 1;
    job.deep = job.outer_extent[1] > 1;
}

}  // namespace

template <class T>
bool cut_columns(const TileJob<T>& job, ColumnCut& cut) {
    constexpr int R = column_chunk, most_blocks = 16, fewest_rows = 6, fewest_columns = 12;
    constexpr std::int64_t most_tiles = std::int64_t{1} << 30;
    cut = {};
    if (job.rows < fewest_rows || job.columns < fewest_columns) return false;
    const int chunks = (job.rows + R - 1) / R;
    for (int k = 0; k < 4; ++k) {
        if (!job.operand[k].data) continue;
        // Where no lane's neighbour has its neighbour in memory, or elements go one by one, tiles of 64 bytes a row are as fast.
        if (job.operand[k].column_stride != 1 || (job.rows > R && !aligned(job.operand[k], job.outer_extent))) return false;
    }
    cut.slot_rows = std::min(job.rows, R);
    if (chunks <= 128 / R) {  // 256 bytes of a row at a time
        cut.chunks = chunks;
        cut.share = sizeof(T) == 8 ? 1 : 2;
        cut.across = 128 / R / chunks * cut.share;
    } else {  // 128 bytes, so that more of a column fits
        cut.blocks = (chunks + 256 / R - 1) / (256 / R);
        cut.chunks = (chunks + cut.blocks - 1) / cut.blocks;
        if (sizeof(T) == 8) cut.lane_columns = 16, cut.chunks = (cut.chunks + 1) / 2 * 2;
    }
    if (cut.blocks > most_blocks) return false;
    cut.columns = cut.across * cut.lane_columns;
    cut.warps = cut.chunks * cut.columns / 32;
    set_levels(cut);
    const std::int64_t outer = std::int64_t{job.outer_extent[0]} * job.outer_extent[1] * job.outer_extent[2];
    return 32 * cut.warps <= most_column_threads<T> && (job.columns + cut.columns - 1) / cut.columns * outer < most_tiles && place_columns<T>(cut);
}

template <class T>
void solve_cut_columns(const TileJob<T>& from, const ColumnCut& cut, cudaStream_t stream) {
    ColumnJob<T> job;
    job.cut = cut;
    job.rows = from.rows, job.columns = from.columns;
    job.accept = from.accept, job.marks = from.marks, job.handed_over = from.handed_over, job.column_weight = from.column_weight;
    std::copy(from.operand, from.operand + 5, job.operand);
    sort_outer_levels(job, from);
    job.tiles_per_run = static_cast<unsigned>((job.columns + cut.columns - 1) / cut.columns);
    job.tiles = job.tiles_per_run * job.outer_extent[0] * job.outer_extent[1] * job.outer_extent[2];
    for (int k = 0; k < 4; ++k) {
        job.path[k] = !job.operand[k].data ? ColumnPath::scalar : encode(job, job.operand[k], job.maps[k]) ? ColumnPath::tensor : ColumnPath::elements;
        if (job.path[k] == ColumnPath::tensor) job.tensor_bytes += static_cast<unsigned>(cut.slice_elements / 4 * static_cast<int>(sizeof(T)));
        if (job.path[k] == ColumnPath::elements) job.elements = true;
    }
    launch_columns(job, stream);
}

template bool cut_columns(const TileJob<float>&, ColumnCut&);
template bool cut_columns(const TileJob<double>&, ColumnCut&);
template void solve_cut_columns(const TileJob<float>&, const ColumnCut&, cudaStream_t);
template void solve_cut_columns(const TileJob<double>&, const ColumnCut&, cudaStream_t);

}  // namespace trifold::cuda
