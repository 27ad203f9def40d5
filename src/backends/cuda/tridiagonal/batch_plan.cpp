// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/batch_plan.hpp"

#include <cmath>
#include <cstdlib>
#include <limits>

namespace trifold::cuda {

using tridiagonal::Operand;
using tridiagonal::System;

namespace {

// Accepted residual in units of roundoff, against max|diag| max|x| of a lane's rows: elimination leaves 1 to 10 of them where no
// pivot is small; measured over the whole system, as LAPACK's backward error is, what is accepted comes to less than that.
constexpr double accepted_roundoffs = 16;

template <class T>
TileOperand<T> operand_of(const Operand& from, int column_level, const int (&outer_level)[3]) {
    TileOperand<T> to;
    if (from.kind == Operand::Kind::scalar) {
        to.value = static_cast<T>(from.value);
        return to;
    }
    to.data = static_cast<T*>(from.data);
    to.row_stride = from.row_stride;
    if (column_level >= 0) to.column_stride = from.level_stride[column_level];
    for (int l = 0; l < 3; ++l)
        if (outer_level[l] >= 0) to.outer_stride[l] = from.level_stride[outer_level[l]];
    return to;
}

}  // namespace

template <class T>
TileJob<T> tile_job(const System& system) {
    TileJob<T> job;
    job.rows = static_cast<int>(system.rows);
    // Levels go from the largest to the smallest stride of rhs: columns are the last one, unless it is too short to fill tiles
    // and another one continues the rows.
    int column_level = system.levels - 1;
    for (int l = 0; l < system.levels; ++l)
        if (system.rhs.row_stride == 1 && system.rhs.level_stride[l] == system.rows) column_level = l;
    int outer_level[3] = {-1, -1, -1}, next = 0;
    std::int64_t weight[4] = {1, 1, 1, 1};
    for (int l = system.levels - 2; l >= 0; --l) weight[l] = weight[l + 1] * system.extent[l + 1];
    for (int l = 0; l < system.levels; ++l)
        if (l != column_level) outer_level[next++] = l;
    job.columns = column_level < 0 ? 1 : system.extent[column_level];
    job.column_weight = column_level < 0 ? 1 : weight[column_level];
    for (int l = 0; l < 3; ++l)
        if (outer_level[l] >= 0) job.outer_extent[l] = static_cast<unsigned>(system.extent[outer_level[l]]), job.outer_weight[l] = weight[outer_level[l]];
    const Operand* const operands[5] = {&system.lower, &system.diag, &system.upper, &system.rhs, &system.x};
    for (int k = 0; k < 5; ++k) {
        job.operand[k] = operand_of<T>(*operands[k], column_level, outer_level);
        if (system.rows == 1) job.operand[k].row_stride = 1;  // one way to see it, whatever the caller's
    }
    job.adds = system.accumulate;
    job.accept = static_cast<T>(accepted_roundoffs * std::numeric_limits<T>::epsilon() / 2);
    return job;
}

template <class T>
bool columns_side_by_side(const TileJob<T>& job) noexcept {
    return job.columns > 1 && std::llabs(job.operand[4].column_stride) < std::llabs(job.operand[4].row_stride);
}

template <class T>
BatchPlan<T> plan_batch(const System& system) {
    BatchPlan<T> plan;
    if (system.rows < 1 || system.rows > 1 << 20) return plan;
    plan.job = tile_job<T>(system);
    TileJob<T> chosen = plan.job;
    if (!columns_side_by_side(plan.job)) {
        // Of the kernels that fit, the one that keeps most rows on chip; the earlier one where that is about the same. Where a part of the matrix is kept, not memory decides but latency: then the later one,
        // which has more warps; and a sixth is gained where systems end with a lane, which is judged in one step then (measured).
        const TileKernels<T> kernels = system.accumulate ? adding_rows_kernels<T>() : rows_kernels<T>();
        int most = 0;
        for (int k = 0; k < kernels.count; ++k) {
            TileJob<T> job = plan.job;
            int held = cut_rows(job, kernels.first[k]);
            if (held == 0) continue;
            const bool more_warps = job.kept && !kernels.first[k].coupled;
            if (more_warps && (job.groups == 1 || job.rows % kernels.first[k].chunk == 0)) held += held / 6;
            if (more_warps ? held >= most - most / 10 : held > most + most / 10) plan.kernel = &kernels.first[k], chosen = job, most = held;
        }
        plan.job = chosen;
        return plan;
    }
    if (cut_columns(plan.job, plan.columns)) {
        plan.in_registers = true;
        return plan;
    }
    // Of the kernels that fit, the one whose lanes are used best; the earlier one where that is the same.
    const TileKernels<T> kernels = tile_kernels<T>();
    double best = 0;
    for (int k = 0; k < kernels.count; ++k) {
        const TileKernel<T>& kernel = kernels.first[k];
        TileJob<T> job = plan.job;
        if (!cut_tiles(job, kernel)) continue;
        const double use = static_cast<double>(job.groups) * job.rows / (job.blocks * kernel.warp_rows());
        if (plan.kernel && use <= best + 0.02) continue;
        best = use;
        plan.kernel = &kernel, chosen = job;
    }
    plan.job = chosen;
    return plan;
}

template TileJob<float> tile_job<float>(const System&);
template TileJob<double> tile_job<double>(const System&);
template bool columns_side_by_side(const TileJob<float>&) noexcept;
template bool columns_side_by_side(const TileJob<double>&) noexcept;
template BatchPlan<float> plan_batch<float>(const System&);
template BatchPlan<double> plan_batch<double>(const System&);

}  // namespace trifold::cuda
