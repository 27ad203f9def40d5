// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/block/tiles.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace trifold::cuda {
namespace {

constexpr int most_blocks = 16, most_parts = 32, block_bytes = 227 * 1024;
constexpr int warp_words = 124, few_words = 28;  // WarpRows<T>::words

template <class T>
constexpr int vector_elements = 16 / static_cast<int>(sizeof(T));

int up(int count, int multiple) { return (count + multiple - 1) / multiple * multiple; }

// How one operand is best copied, its strides being known.
template <class T>
void choose_path(TileOperand<T>& operand, const TileJob<T>& job, int width) {
    using Path = typename TileOperand<T>::Path;
    if (!operand.data) return void(operand.path = Path::scalar);
    const bool runs = job.merged ? operand.column_stride == job.pitch : (operand.column_stride - job.pitch) % vector_elements<T> == 0;
    operand.path = width == 1 && operand.row_stride == 1 && (runs || job.groups == 1) ? Path::vectors : Path::elements;
}

}  // namespace

template <class T>
int shared_bytes(const TileJob<T>& job, const TileKernel<T>& kernel) noexcept {
    if (kernel.width == 1) return rows_bytes(job, kernel);
    const bool alone = kernel.width == 1 && !kernel.coupled;
    const int parts = kernel.width == 1 ? job.warps * job.blocks : job.blocks;
    int words = 4 * job.tile_elements + job.warps * warp_words;
    if (kernel.width == 1) words += 4 * ((job.warps - 2) * job.tile_elements + job.last_elements);
    if (kernel.coupled) words += job.warps * (parts <= 8 ? few_words : 0) + 6 * kernel.width * parts;
    return (kernel.width == 1 ? 16 * job.warps : 0) + words * static_cast<int>(sizeof(T)) + (alone ? job.warps : 1) * job.flags;
}

template <class T>
bool cut_tiles(TileJob<T>& job, const TileKernel<T>& kernel, int warps) {
    constexpr int E = vector_elements<T>;
    const int width = kernel.width, most = kernel.warp_rows(), parts = (job.rows + most - 1) / most;
    if (kernel.coupled != (parts > 1) || parts > most_parts) return false;
    job.warps = width > 1 ? width : std::min(warps, kernel.warps);
    job.blocks = 1;
    if (kernel.coupled) {
        job.blocks = width > 1 ? parts : (parts + job.warps - 1) / job.warps;
        if (width == 1) job.warps = (parts + job.blocks - 1) / job.blocks;
        if (job.blocks > most_blocks) return false;
    }
    job.block_rows = kernel.coupled ? most : job.rows;
    job.pitch = job.block_rows;
    job.merged = false, job.ahead = 0;
    if (width == 1 && !kernel.coupled) {
        // Where systems follow each other with gaps, they keep their offset from a 16-byte boundary.
        const TileOperand<T>& rhs = job.operand[3];
        if (rhs.data && rhs.row_stride == 1) job.pitch += static_cast<int>(((rhs.column_stride - job.rows) % E + E) % E);
        if (job.pitch > most) job.pitch = job.rows;
        job.merged = job.pitch == job.rows && rhs.column_stride == job.rows && rhs.row_stride == 1;
    }
    job.pitch_inverse = ((1u << 20) + static_cast<unsigned>(job.pitch) - 1) / static_cast<unsigned>(job.pitch);
    job.one_run = job.outer_extent[0] * job.outer_extent[1] * job.outer_extent[2] == 1;
    job.groups = kernel.coupled ? 1 : static_cast<int>(std::min<std::int64_t>(most / job.pitch, (job.columns + width - 1) / width));
    const int rows = up(job.groups * job.pitch, kernel.chunk);
    job.tile_elements = up(width == 1 ? rows + E : rows * width + rows / kernel.chunk, E);
    job.last_elements = job.tile_elements;
    if (kernel.coupled && width == 1 && job.blocks == 1) job.last_elements = up(up(job.rows - (parts - 1) * most, kernel.chunk) + E, E);
    job.flags = up(job.groups * width, 4);
    if (shared_bytes(job, kernel) > block_bytes) return false;
    const std::int64_t per_run = (job.columns + job.groups * width - 1) / (job.groups * width);
    const std::int64_t tiles = per_run * job.outer_extent[0] * job.outer_extent[1] * job.outer_extent[2];
    if (tiles * job.blocks >= std::int64_t{1} << 31) return false;
    job.tiles_per_run = static_cast<unsigned>(per_run), job.tiles = static_cast<unsigned>(tiles);
    for (TileOperand<T>& operand : job.operand) choose_path(operand, job, width);
    // Pieces of a row of 64 bytes: the loads of a multiprocessor are then too few to cover the memory's latency, that of the cache
    // they cover. Not where rows lie 2 MiB apart: what was asked for would be gone again (measured on an H200).
    const TileOperand<T>& rhs = job.operand[3];
    const bool narrow = width > 1 && job.groups * width * static_cast<int>(sizeof(T)) == 64;
    if (narrow && std::abs(rhs.row_stride) * static_cast<std::int64_t>(sizeof(T)) <= 1 << 20)
        job.ahead = static_cast<unsigned>(job.blocks > 1 ? std::max(132 / job.blocks, 1) : 264);
    return true;
}

template int shared_bytes(const TileJob<float>&, const TileKernel<float>&) noexcept;
template int shared_bytes(const TileJob<double>&, const TileKernel<double>&) noexcept;
template bool cut_tiles(TileJob<float>&, const TileKernel<float>&, int);
template bool cut_tiles(TileJob<double>&, const TileKernel<double>&, int);

}  // namespace trifold::cuda
