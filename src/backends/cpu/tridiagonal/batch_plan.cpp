// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cpu/tridiagonal/batch_plan.hpp"

#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "backends/cpu/tridiagonal/batch_kernel.hpp"

namespace trifold::cpu {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::Operand;
using tridiagonal::System;

// Bound on |a c'| over |a| + |b| below which the unpivoted pass is kept: its backward error is then at most about 4 (1 + 2·4) u
// of the row, the order of what pivoting itself allows. `thomas` by name has the same: beyond it the word would not be `exact`.
constexpr double safe_growth = 4;

// c' and d' of a block: above the first they leave the caches that one core can count on, and a narrow block is better; the
// second bounds the workspace. Spilling them costs less than eliminating twice as long as they fit the last cache, and was
// not slower than that at four times its size.
constexpr std::int64_t wide_block_bytes = 4 << 20, kept_bytes = 32 << 20;

// A way of the second-level cache of Zen and of most others: rows that are as far apart, or a multiple, meet in one set.
constexpr std::int64_t way_bytes = 64 << 10, ways = 16;
// c' and d' of a block that are to stay in the second-level cache beside the lines that pass; of one whose rows lie on more pages than a processor remembers, which waits for these longer than for c' and d' from the last cache.
constexpr std::int64_t overlapped_bytes = 256 << 10, far_overlapped_bytes = 2 << 20;
constexpr std::int64_t page_bytes = 4096, pages_remembered = 320;  // of each array
// Operands that a core may find in its own caches.
constexpr std::int64_t cached_bytes = 4 << 20;

/// Planned once for all threads that there may be: what is computed does not depend on it.
std::int64_t processors() {
    static const std::int64_t all = omp_get_num_procs();
    return all;
}

/// Blocks that are eliminated and substituted side by side: narrow, so that c' and d' find room in the first-level cache. They need a
/// second-level cache that keeps a line of rhs of every row; rows many powers of two apart meet in few sets of it. Rows that lie on many pages are asked for by four lines at once, if that leaves all threads some blocks.
template <class T>
void overlap(BatchJob<T>& job) {
    for (const BatchOperand<T>* operand : {&job.lower, &job.diag, &job.upper, &job.rhs}) {
        const bool side_by_side = operand->kind == Operand::Kind::view && operand->lane_stride == 1 && operand->row_stride == job.rhs.row_stride;
        if (!side_by_side && (operand == &job.rhs || operand->kind != Operand::Kind::scalar)) return;
    }
    // What is left over of a line goes the other way, together with a whole line.
    if (job.lanes % job.line != 0 && job.lanes < 6 * job.line) return;
    if (job.x.lane_stride != 1 || job.lanes == 0 || job.rows < 2 || job.method == BatchMethod::pivoted) return;
    const std::int64_t stride = std::max<std::int64_t>(std::abs(job.rhs.row_stride) * static_cast<std::int64_t>(sizeof(T)), 64);
    const std::int64_t sets = way_bytes / std::gcd(stride, way_bytes);
    const std::int64_t bytes = 4 * job.rows * job.lanes * job.outer() * static_cast<std::int64_t>(sizeof(T));
    // One line waits for its divisions, which memory hides and caches do not.
    int lines = job.rows < 12 ? 4 : job.rows < 32 || (bytes <= cached_bytes && job.rows <= 256) ? 2 : 1;
    // Four vectors at a time have registers. Shorter ones wait less in a line; four lines of them are too many.
    const int most = static_cast<int>(4 * batch_vector_bytes() / 64);
    const bool far_apart = bytes > cached_bytes && job.rows * std::min(stride, page_bytes) >= pages_remembered * page_bytes;
    if (far_apart) {
        lines = std::min(4, most);
        while (lines > 1 && job.lanes / (job.line * lines) * job.outer() < 2 * processors()) lines /= 2;
    }
    if (job.rows > ways * sets) {
        if (most < 4) return;
        lines = 4;
    }
    lines = std::min(lines, most);
    if (job.rows * lines * 2 * 64 > (far_apart ? far_overlapped_bytes : overlapped_bytes)) return;
    job.overlapped_lines = lines;
    job.ahead_rows = std::clamp<std::int64_t>(4 * sets, 12, 64);
}

template <class T>
BatchOperand<T> operand_of(const Operand& from, const BatchShape& shape) {
    BatchOperand<T> to;
    to.kind = from.kind;
    to.value = static_cast<T>(from.value);
    if (from.kind != Operand::Kind::view) return to;
    to.data = static_cast<T*>(from.data);
    to.row_stride = from.row_stride;
    to.lane_stride = from.level_stride[shape.lane_level];
    for (int l = 0; l < shape.outer_levels; ++l) to.outer_stride[l] = from.level_stride[shape.outer_level[l]];
    return to;
}

}  // namespace

BatchShape shape_of(const System& system) {
    BatchShape shape;
    std::int64_t weight = 1;
    int longest = 0;
    for (int l = system.levels - 1; l >= 0; --l) {
        shape.weight[l] = weight;
        weight *= system.extent[l];
        if (system.extent[l] > system.extent[longest]) longest = l;
    }
    // Systems side by side are read where they are; otherwise the longest level wastes the fewest lanes.
    shape.lane_level = longest;
    for (int l = 0; l < system.levels; ++l) {
        // One right-hand side of all systems lies nowhere beside itself: x tells then.
        const std::int64_t beside = system.rhs.level_stride[l] != 0 ? system.rhs.level_stride[l] : system.x.level_stride[l];
        if (beside == 1 && system.extent[l] >= 16) shape.lane_level = l;
    }
    for (int l = 0; l < system.levels; ++l)
        if (l != shape.lane_level) {
            shape.outer_extent[shape.outer_levels] = system.extent[l];
            shape.outer_level[shape.outer_levels++] = l;
        }
    return shape;
}

template <class T>
BatchJob<T> job_of(const System& system, const BatchShape& shape, Algorithm algorithm) {
    BatchJob<T> job;
    job.rows = system.rows;
    job.lanes = system.extent[shape.lane_level];
    job.outer_levels = shape.outer_levels;
    std::copy_n(shape.outer_extent, 3, job.outer_extent);
    job.lower = operand_of<T>(system.lower, shape);
    job.diag = operand_of<T>(system.diag, shape);
    job.upper = operand_of<T>(system.upper, shape);
    job.rhs = operand_of<T>(system.rhs, shape);
    job.x = operand_of<T>(system.x, shape);
    job.in_place = system.in_place;
    job.method = algorithm == Algorithm::lu ? BatchMethod::pivoted
                 : algorithm == Algorithm::thomas ? BatchMethod::unpivoted
                                                  : BatchMethod::checked;
    job.growth = static_cast<T>(safe_growth);
    // Transposed: one line of systems where batch_columns-inl.h takes all operands; else two, which hide each other's divisions.
    if (job.rhs.row_stride == 1 && job.rhs.lane_stride != 1) {
        bool alike = job.method != BatchMethod::pivoted;
        for (const BatchOperand<T>* operand : {&job.lower, &job.diag, &job.upper})
            alike = alike && operand->kind == job.rhs.kind && operand->row_stride == 1 && operand->lane_stride == job.rhs.lane_stride;
        job.block_lines = alike ? 1 : 2;
    }
    const auto rows_in = [&](std::int64_t bytes) { return bytes / (2 * 64 * job.block_lines); };
    if (job.rows > rows_in(wide_block_bytes)) job.block_lines = std::min(job.block_lines, 2);
    if (job.lanes <= job.line && !(job.rhs.row_stride == 1 && job.rhs.lane_stride != 1)) job.block_lines = 1;
    job.segment_rows = rows_in(kept_bytes);
    overlap(job);
    return job;
}

template BatchJob<float> job_of<float>(const System&, const BatchShape&, Algorithm);
template BatchJob<double> job_of<double>(const System&, const BatchShape&, Algorithm);

}  // namespace trifold::cpu
