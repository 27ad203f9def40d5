// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/block/tiles.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace trifold::cuda {
namespace {

constexpr int most_blocks = 16, block_bytes = 227 * 1024;
constexpr int warp_words = 124, few_words = 28;  // WarpRows<T>::words

int up(int count, int multiple) { return (count + multiple - 1) / multiple * multiple; }

}  // namespace

template <class T>
int shared_bytes(const TileJob<T>& job, const TileKernel<T>& kernel) noexcept {
    if (kernel.width == 1) return rows_bytes(job, kernel);
    int words = 4 * job.tile_elements + job.warps * warp_words;
    if (kernel.coupled) words += job.warps * (job.blocks <= 8 ? few_words : 0) + 6 * kernel.width * job.blocks;
    return words * static_cast<int>(sizeof(T)) + job.flags;
}

template <class T>
unsigned same_in_all(const TileJob<T>& job) noexcept {
    unsigned same = 0;
    for (unsigned k = 0; k < 3; ++k) {
        const TileOperand<T>& operand = job.operand[k];
        bool varies = operand.data && job.columns > 1 && operand.column_stride != 0;
        for (int l = 0; l < 3; ++l) varies = varies || (operand.data && job.outer_extent[l] > 1 && operand.outer_stride[l] != 0);
        if (!varies) same |= 1u << k;
    }
    return same;
}

template <class T>
bool cut_tiles(TileJob<T>& job, const TileKernel<T>& kernel) {
    using Path = typename TileOperand<T>::Path;
    const int width = kernel.width, most = kernel.warp_rows(), parts = (job.rows + most - 1) / most;
    if (kernel.coupled != (parts > 1) || parts > most_blocks) return false;
    job.warps = width;
    job.blocks = parts;
    job.block_rows = job.pitch = kernel.coupled ? most : job.rows;
    job.merged = false, job.ahead = 0;
    job.pitch_inverse = ((1u << 20) + static_cast<unsigned>(job.pitch) - 1) / static_cast<unsigned>(job.pitch);
    job.one_run = job.outer_extent[0] * job.outer_extent[1] * job.outer_extent[2] == 1;
    job.groups = kernel.coupled ? 1 : static_cast<int>(std::min<std::int64_t>(most / job.pitch, (job.columns + width - 1) / width));
    const int rows = up(job.groups * job.pitch, kernel.chunk);
    job.tile_elements = up(rows * width + rows / kernel.chunk, 16 / static_cast<int>(sizeof(T)));
    job.flags = up(job.groups * width, 4);
    if (shared_bytes(job, kernel) > block_bytes) return false;
    const std::int64_t per_run = (job.columns + job.groups * width - 1) / (job.groups * width);
    const std::int64_t tiles = per_run * job.outer_extent[0] * job.outer_extent[1] * job.outer_extent[2];
    if (tiles * job.blocks >= std::int64_t{1} << 31) return false;
    job.tiles_per_run = static_cast<unsigned>(per_run), job.tiles = static_cast<unsigned>(tiles);
    for (TileOperand<T>& operand : job.operand) operand.path = operand.data ? Path::elements : Path::scalar;
    // Pieces of a row of 64 bytes: the loads of a multiprocessor are then too few to cover the memory's latency, that of the cache
    // they cover. Not where rows lie 2 MiB apart: what was asked for would be gone again (measured on an H200).
    const TileOperand<T>& rhs = job.operand[3];
    const bool narrow = job.groups * width * static_cast<int>(sizeof(T)) == 64;
    if (narrow && std::abs(rhs.row_stride) * static_cast<std::int64_t>(sizeof(T)) <= 1 << 20)
        job.ahead = static_cast<unsigned>(job.blocks > 1 ? std::max(132 / job.blocks, 1) : 264);
    return true;
}

template unsigned same_in_all(const TileJob<float>&) noexcept;
template unsigned same_in_all(const TileJob<double>&) noexcept;
template int shared_bytes(const TileJob<float>&, const TileKernel<float>&) noexcept;
template int shared_bytes(const TileJob<double>&, const TileKernel<double>&) noexcept;
template bool cut_tiles(TileJob<float>&, const TileKernel<float>&);
template bool cut_tiles(TileJob<double>&, const TileKernel<double>&);

}  // namespace trifold::cuda
