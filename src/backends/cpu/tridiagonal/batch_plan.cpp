// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cpu/tridiagonal/batch_plan.hpp"

#include <algorithm>

namespace trifold::cpu {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::Operand;
using tridiagonal::System;

// Bound on |a c'| over |a| + |b| below which the unpivoted pass is kept: its backward error is then at most about 4 (1 + 2·4) u
// of the row, the order of what pivoting itself allows.
constexpr double safe_growth = 4;
// The same for `thomas` by name, whose caller wants it unless it fails: three digits.
constexpr double tolerated_growth = 1e3;

// c' and d' of a block: above the first they leave the caches that one core can count on, and a narrow block is better; the
// second bounds the workspace. Spilling them costs less than eliminating twice as long as they fit the last cache, and was
// not slower than that at four times its size.
constexpr std::int64_t wide_block_bytes = 4 << 20, kept_bytes = 32 << 20;

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
    for (int l = 0; l < system.levels; ++l)
        if (system.rhs.level_stride[l] == 1 && system.extent[l] >= 16) shape.lane_level = l;
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
    job.growth = static_cast<T>(algorithm == Algorithm::thomas ? tolerated_growth : safe_growth);
    // Transposed: few streams, so that what the processor fetches ahead is what comes next. See batch_columns-inl.h.
    if (job.rhs.row_stride == 1 && job.rhs.lane_stride != 1) job.block_lines = 2;
    const auto rows_in = [&](std::int64_t bytes) { return bytes / (2 * 64 * job.block_lines); };
    if (job.rows > rows_in(wide_block_bytes)) job.block_lines = 2;
    job.segment_rows = rows_in(kept_bytes);
    return job;
}

template BatchJob<float> job_of<float>(const System&, const BatchShape&, Algorithm);
template BatchJob<double> job_of<double>(const System&, const BatchShape&, Algorithm);

}  // namespace trifold::cpu
