// SPDX-License-Identifier: BSD-3-Clause
// How a batch whose rows lie side by side is cut: systems per warp, or warps and blocks per system.
#include <algorithm>
#include <cstdint>

#include "backends/cuda/tridiagonal/block/rows_layout.hpp"
#include "backends/cuda/tridiagonal/block/tiles.hpp"

namespace trifold::cuda {
namespace {

constexpr int most_parts = 32, most_blocks = 16;
constexpr int block_bytes = 227 * 1024, multiprocessor_bytes = 228 * 1024, reserved_bytes = 1024;  // shared memory, the driver's part of a block's

int up(int count, int multiple) { return (count + multiple - 1) / multiple * multiple; }

template <class T>
constexpr int E = 16 / static_cast<int>(sizeof(T));

// Elements of memory for so many rows, wherever in a line they begin.
template <class T>
int tile_of(const TileJob<T>& job, int rows) {
    const int line = job.line / static_cast<int>(sizeof(T));
    return up(rows + line - 1, line);
}

template <class T>
RowsMemory layout_of(const TileJob<T>& job, bool coupled) {
    return {sizeof(T), job.warps, job.tile_elements, job.last_elements, job.flags, coupled, job.warps * job.blocks};
}

// Rows that a multiprocessor holds at a time; 0 where the block does not fit. Blocks of a cluster wait for each other, and not every
// place is one for a cluster: each one more counts as a twentieth less.
template <class T>
int resident_rows(const TileJob<T>& job, const TileKernel<T>& kernel) {
    const int bytes = layout_of(job, kernel.coupled).bytes;
    if (bytes > block_bytes) return 0;
    const int blocks = std::min(multiprocessor_bytes / (bytes + reserved_bytes), kernel.warps * kernel.resident / job.warps);
    return kernel.coupled ? blocks * job.rows / job.blocks * (21 - job.blocks) / 20 : blocks * job.warps * job.groups * job.rows;
}

// Rows from system to system in a tile. Where operands leave gaps that are small, these come along; else systems keep their offset
// from a 16-byte boundary, so that bulk copies can place them.
template <class T>
int pitch_of(const TileJob<T>& job, int most) {
    const TileOperand<T>& rhs = job.operand[3];
    if (!rhs.data || rhs.row_stride != 1) return job.rows;
    const std::int64_t gap = rhs.column_stride - job.rows;
    if (gap >= 0 && rhs.column_stride <= most && gap * 16 <= std::max(job.rows, 16 * E<T>)) return static_cast<int>(rhs.column_stride);
    const int pitch = job.rows + static_cast<int>((gap % E<T> + E<T>) % E<T>);
    return pitch <= most ? pitch : job.rows;
}

template <class T>
void choose_paths(TileJob<T>& job) {
    using Path = typename TileOperand<T>::Path;
    job.spans = job.span_stored = true, job.even = job.one_run && job.tiles > 2, job.kept = same_in_all(job);
    for (int k = 0; k < 5; ++k) {
        TileOperand<T>& operand = job.operand[k];
        const bool packed = operand.row_stride == 1 && (job.groups == 1 || operand.column_stride == job.pitch);
        const bool runs = operand.row_stride == 1 && (job.groups == 1 || (operand.column_stride - job.pitch) % E<T> == 0);
        operand.path = !operand.data ? Path::scalar : runs ? Path::vectors : Path::elements;
        operand.tile_stride = job.groups * operand.column_stride;
        const bool span = operand.data && packed, kept = k < 3 && job.kept >> k & 1;
        if (!kept && (operand.column_stride < job.rows || (k < 4 && !span))) job.even = false;
        if (k < 4) job.spans &= span;
        else job.runs_stored = packed, job.span_stored = packed && (job.groups == 1 || job.pitch == job.rows);
    }
}

template <class T>
int cut_parts(TileJob<T>& job, const TileKernel<T>& kernel) {
    const int most = kernel.warp_rows(), least = (job.rows + most - 1) / most;
    if (least < 2 || least > most_parts) return 0;
    job.groups = 1, job.flags = 0;
    job.block_rows = job.pitch = most;
    TileJob<T> best = job;
    int held = 0;
    for (job.line = 128; job.line >= 32; job.line /= 2)
        for (job.blocks = 1; job.blocks <= std::min(most_blocks, least); ++job.blocks) {
            job.warps = (least + job.blocks - 1) / job.blocks;
            if (job.warps > kernel.warps || job.warps * job.blocks > most_parts) continue;
            job.tile_elements = job.last_elements = tile_of(job, most);
            if (job.blocks == 1) job.last_elements = tile_of(job, up(job.rows - (least - 1) * most, kernel.chunk));
            const int rows = resident_rows(job, kernel);
            if (rows > held + held / 10) best = job, held = rows;
        }
    job = best;
    return held;
}

template <class T>
int cut_groups(TileJob<T>& job, const TileKernel<T>& kernel) {
    const int most = kernel.warp_rows();
    if (job.rows > most) return 0;
    if (kernel.chunk > 33 && job.rows < 16) return 0;  // where systems end in a lane's rows is 64 bits then
    job.block_rows = job.rows;
    job.pitch = pitch_of(job, most);
    job.groups = static_cast<int>(std::min<std::int64_t>(most / job.pitch, job.columns));
    job.tile_elements = job.last_elements = tile_of(job, up(job.groups * job.pitch, kernel.chunk));
    job.flags = up(job.groups, 4);
    TileJob<T> best = job;
    int held = 0;
    for (job.warps = std::min(4, kernel.warps); job.warps > 0; --job.warps) {
        const int rows = resident_rows(job, kernel);
        if (rows > held) best = job, held = rows;
    }
    job = best;
    // Measured: lanes that lie idle are worth more than longer chunks (400 rows: 49 a lane, a quarter of them idle, 94 % of the roof, 43 and an eighth 97).
    const bool idle = kernel.chunk > 33 && 5 * job.groups * job.pitch < 4 * most;
    return idle ? held - held / 10 : held;
}

}  // namespace

template <class T>
int rows_bytes(const TileJob<T>& job, const TileKernel<T>& kernel) noexcept {
    return layout_of(job, kernel.coupled).bytes;
}

template <class T>
int cut_rows(TileJob<T>& job, const TileKernel<T>& kernel) {
    job.blocks = 1, job.ahead = 0, job.merged = false;
    const int held = kernel.coupled ? cut_parts(job, kernel) : cut_groups(job, kernel);
    if (held == 0) return 0;
    job.long_inverse = ((1ull << 32) + static_cast<unsigned>(job.pitch) - 1) / static_cast<unsigned>(job.pitch);
    job.one_run = job.outer_extent[0] * job.outer_extent[1] * job.outer_extent[2] == 1;
    const std::int64_t per_run = (job.columns + job.groups - 1) / job.groups;
    const std::int64_t tiles = per_run * job.outer_extent[0] * job.outer_extent[1] * job.outer_extent[2];
    if (tiles * job.blocks >= std::int64_t{1} << 31) return 0;
    job.tiles_per_run = static_cast<unsigned>(per_run), job.tiles = static_cast<unsigned>(tiles);
    // Draws cost as much as some 16 KB of a tile's five arrays; few tiles are for as many warps as there are.
    const int tile_bytes = 5 * static_cast<int>(sizeof(T)) * job.groups * job.rows;
    job.draw = kernel.coupled || tiles < 1 << 15 ? 1 : tile_bytes >= 18 << 10 ? 1 : tile_bytes >= 4 << 10 ? 2 : 4;
    job.draws = job.tiles / job.draw;
    choose_paths(job);
    return held;
}

template int rows_bytes(const TileJob<float>&, const TileKernel<float>&) noexcept;
template int rows_bytes(const TileJob<double>&, const TileKernel<double>&) noexcept;
template int cut_rows(TileJob<float>&, const TileKernel<float>&);
template int cut_rows(TileJob<double>&, const TileKernel<double>&);

}  // namespace trifold::cuda
