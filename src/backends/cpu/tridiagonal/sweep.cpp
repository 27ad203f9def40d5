// SPDX-License-Identifier: BSD-3-Clause
// The certified sweep over one huge system: groups of stretches handed to threads, then the few rows at both ends.
// Kernel, arrays, words and numerics: sweep_group-inl.h.
#include "backends/cpu/tridiagonal/sweep.hpp"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/tridiagonal/sweep.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/tridiagonal/sweep_group-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {

void sweep_group_f32(SweepJob<float>& job, std::int64_t group, float* scratch) { sweep_group(job, group, scratch); }
void sweep_group_f64(SweepJob<double>& job, std::int64_t group, double* scratch) { sweep_group(job, group, scratch); }

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backends/cpu/tridiagonal/sweep_ends.hpp"
#include "backends/cpu/tridiagonal/values.hpp"

namespace trifold::cpu {
namespace {

HWY_EXPORT(sweep_group_f32);
HWY_EXPORT(sweep_group_f64);

using namespace tridiagonal;

void dispatch(SweepJob<float>& job, std::int64_t group, float* scratch) { HWY_DYNAMIC_DISPATCH(sweep_group_f32)(job, group, scratch); }
void dispatch(SweepJob<double>& job, std::int64_t group, double* scratch) { HWY_DYNAMIC_DISPATCH(sweep_group_f64)(job, group, scratch); }

template <class T>
SweepResult run(const System& system, const Stretches& cut, const Launch& launch, StretchBound* bounds) {
    SweepJob<T> job(system, cut, launch.scratch);
    job.bounds = bounds;
    job.ask_for(launch.threads);
    job.each_group(launch.threads, [&](std::int64_t group, T* scratch) { dispatch(job, group, scratch); });
    SweepResult result;
    if (job.stop.load() == 0) {
        if (!sweep_ends(job, result) && system.in_place) restore_groups(job, launch.threads);
        return result;
    }
    result.stop = static_cast<SweepStop>(job.stop.load());
    result.row = job.row.load();
    if (system.in_place) restore_groups(job, launch.threads);
    // The sweep knows a stretch in which something is.
    if (result.stop == SweepStop::not_finite)
        if (const std::int64_t row = first_not_finite<T>(system); row >= 0) result.row = row;
    return result;
}

template <class T>
void undo(const System& system, const Stretches& cut, const Launch& launch) {
    SweepJob<T> job(system, cut, launch.scratch);
    restore_ends(job);
    restore_groups(job, launch.threads);
}

}  // namespace

const char* sweep_refuses(const System& system) {
    if (system.levels != 0 || system.offsets) return "certified solves one system";
    if (system.periodic) return "certified does not solve periodic systems";
    if (system.accumulate) return "certified stores x and does not add to it";
    for (const Operand* operand : {&system.lower, &system.diag, &system.upper, &system.rhs, &system.x}) {
        if (operand->kind == Operand::Kind::generator) return "certified reads arrays and scalars, not generators";
        if (operand->kind == Operand::Kind::view && operand->row_stride != 1) return "certified needs rows that lie side by side";
    }
    return nullptr;
}

std::size_t sweep_scratch(const System& system, const Stretches& cut, int threads) {
    return system.dtype == DType::f32 ? SweepSizes<float>(cut, system.in_place).bytes(threads)
                                      : SweepSizes<double>(cut, system.in_place).bytes(threads);
}

SweepResult sweep(const System& system, const Stretches& cut, const Launch& launch, StretchBound* bounds) {
    return system.dtype == DType::f32 ? run<float>(system, cut, launch, bounds) : run<double>(system, cut, launch, bounds);
}

void unsweep(const System& system, const Stretches& cut, const Launch& launch) {
    if (system.dtype == DType::f32) undo<float>(system, cut, launch);
    else undo<double>(system, cut, launch);
}

}  // namespace trifold::cpu
#endif
