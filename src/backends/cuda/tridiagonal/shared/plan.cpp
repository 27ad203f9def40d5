// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/shared/plan.hpp"

#include <algorithm>
#include <cstdlib>

namespace trifold::cuda {
namespace {

using tridiagonal::Operand;
using tridiagonal::System;

template <class T>
SharedBand<T> band_of(const Operand& from) {
    if (from.kind == Operand::Kind::scalar) return {nullptr, static_cast<T>(from.value), 0};
    return {static_cast<const T*>(from.data), T(0), from.row_stride};
}

template <class T>
SharedOperand<T> operand_of(const Operand& from, int levels) {
    SharedOperand<T> to;
    to.data = static_cast<T*>(from.data);
    to.row_stride = from.row_stride;
    for (int l = 0; l < levels; ++l) to.level_stride[l] = from.level_stride[l];
    return to;
}

// 16 bytes of a row are the same columns' everywhere.
template <class T>
bool in_vectors(const SharedJob<T>& job) {
    constexpr int V = 16 / static_cast<int>(sizeof(T));
    const int last = job.levels - 1;
    if (job.rhs.level_stride[last] != 1 || job.extent[last] % V != 0 || job.rhs.row_stride % V != 0) return false;
    for (int l = 0; l < last; ++l)
        if (job.rhs.level_stride[l] % V != 0) return false;
    return reinterpret_cast<std::uintptr_t>(job.rhs.data) % 16 == 0;
}

}  // namespace

template <class T>
SharedPlan<T> plan_shared(const System& system) {
    SharedPlan<T> plan;
    const std::int64_t systems = system.systems();
    if (system.levels < 1 || systems < 2 || systems >= std::int64_t{1} << 31 || system.rows < 2 || system.rows > 1 << 20) return plan;
    if (!have_one_matrix(system)) return plan;
    if (system.periodic && (system.rows < 3 || !is_row_of(system, system.top_right, system.lower, 0) || !is_row_of(system, system.bottom_left, system.upper, system.rows - 1))) return plan;
    SharedJob<T>& job = plan.job;
    job.lower = band_of<T>(system.lower), job.diag = band_of<T>(system.diag), job.upper = band_of<T>(system.upper);
    job.rhs = operand_of<T>(system.rhs, system.levels), job.x = operand_of<T>(system.x, system.levels);
    job.adds = system.accumulate;
    job.rows = static_cast<int>(system.rows), job.levels = system.levels, job.closed = system.periodic, job.systems = static_cast<unsigned>(systems);
    for (int l = 0; l < system.levels; ++l) job.extent[l] = static_cast<unsigned>(system.extent[l]);
    if (in_vectors(job)) job.copies = ColumnCopies::vectors;
    const bool columns = std::llabs(job.x.level_stride[job.levels - 1]) < std::llabs(job.x.row_stride);
    if (!columns && (job.rhs.row_stride != 1 || job.x.row_stride != 1)) return plan;
    // Of the kernels that fit, the one whose threads are used best, or whose pieces of rows that begin anywhere are widest; a later one
    // where that is a fifth more.
    const SharedKernels<T> kernels = job.closed ? shared_ring_kernels<T>() : job.adds ? adding_shared_kernels<T>() : shared_kernels<T>();
    const SharedJob<T> whole = job;
    double best = 0;
    for (int k = 0; k < kernels.count; ++k) {
        const SharedKernel<T>& kernel = kernels.first[k];
        SharedJob<T> cut = whole;
        if (kernel.columns != columns || !kernel.cut(cut, kernel)) continue;
        if (kernel.bands) return plan.kernel = &kernel, job = cut, plan;
        const double use = columns ? column_slack<T>(cut.copies) ? cut.across : 1 : static_cast<double>(cut.groups) * cut.rows / (cut.parts * 32 * kernel.rows);
        if (plan.kernel && use <= 1.2 * best) continue;
        best = use;
        plan.kernel = &kernel, job = cut;
    }
    return plan;
}

template SharedPlan<float> plan_shared<float>(const System&);
template SharedPlan<double> plan_shared<double>(const System&);

}  // namespace trifold::cuda
