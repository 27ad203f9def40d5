// SPDX-License-Identifier: BSD-3-Clause
// The pivoted sweep over one huge system that forgets: groups of stretches handed to threads, then the rows where stretches meet.
// Kernel, arrays, words and numerics: pivoted_group-inl.h.
#include "backends/cpu/tridiagonal/pivoted.hpp"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/tridiagonal/pivoted.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/tridiagonal/pivoted_group-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {

std::int64_t pivoted_lanes_f32() { return static_cast<std::int64_t>(lanes_of<hn::ScalableTag<float>>); }
std::int64_t pivoted_lanes_f64() { return static_cast<std::int64_t>(lanes_of<hn::ScalableTag<double>>); }
void pivoted_group_f32(PivotedJob<float>& job, std::int64_t group, float* scratch) { pivoted_group(job, group, scratch); }
void pivoted_group_f64(PivotedJob<double>& job, std::int64_t group, double* scratch) { pivoted_group(job, group, scratch); }

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backends/cpu/tridiagonal/pivoted_call.hpp"

namespace trifold::cpu {
namespace {

HWY_EXPORT(pivoted_lanes_f32);
HWY_EXPORT(pivoted_lanes_f64);
HWY_EXPORT(pivoted_group_f32);
HWY_EXPORT(pivoted_group_f64);

using namespace tridiagonal;

void dispatch(PivotedJob<float>& job, std::int64_t group, float* scratch) { HWY_DYNAMIC_DISPATCH(pivoted_group_f32)(job, group, scratch); }
void dispatch(PivotedJob<double>& job, std::int64_t group, double* scratch) { HWY_DYNAMIC_DISPATCH(pivoted_group_f64)(job, group, scratch); }

/// Whether all blocks agree with their neighbours, in one stretch or in two: relative to the x there, or, far from what drives the
/// system, where x is nothing but what the blocks beyond have left of it, to a fraction of a rounding of the largest x.
template <class T>
bool agree(const PivotedJob<T>& job, double unit) {
    T largest = 0, jump = 0;
    for (std::int64_t stretch = 0; stretch < job.cut.groups * job.cut.lanes; ++stretch) {
        const std::int64_t first = stretch * job.cut.length() - job.cut.pad;
        if (first >= job.cut.rows) break;
        const PivotedSeam<T>& below = job.seams[stretch];
        largest = std::max(largest, below.largest), jump = std::max(jump, below.jump);
        if (stretch == 0) continue;
        const PivotedSeam<T>& above = job.seams[stretch - 1];
        const T* const x = job.arrays.x + first;
        const T up = std::abs(below.before - x[-1]), down = std::abs(above.after - x[0]), apart = std::max(up, down);
        if (!std::isfinite(up + down)) return false;  // max may drop a NaN
        if (!(apart <= job.apart * std::max(above.last_largest, below.first_largest))) jump = std::max(jump, apart);
    }
    return static_cast<double>(jump) <= unit / 1024 * static_cast<double>(largest);
}

template <class T>
bool run(const System& system, const Launch& launch, std::int64_t lanes) {
    const std::int64_t block = PivotedCall<T>::block_for(system);
    if (block == 0) return false;
    PivotedCall<T> call(system, launch, lanes, block);
    if (!call.fits) return false;
    call.each_group(launch.threads, [&](std::int64_t group, T* ring) { dispatch(call.job, group, ring); });
    if (!call.job.stop.load() && agree(call.job, unit_roundoff(system.dtype))) return true;
    if (system.in_place) {
#pragma omp parallel for num_threads(launch.threads) schedule(dynamic, 1)
        for (std::int64_t group = 0; group < call.cut.groups; ++group) call.undo.restore(call.job.arrays, call.cut, group);
    }
    return false;
}

}  // namespace

bool sweep_pivoted(const System& system, const Launch& launch) {
    if (system.rows < PivotedCall<float>::fewest_rows) return false;
    if (system.dtype == DType::f32) return run<float>(system, launch, HWY_DYNAMIC_DISPATCH(pivoted_lanes_f32)());
    return run<double>(system, launch, HWY_DYNAMIC_DISPATCH(pivoted_lanes_f64)());
}

std::size_t pivoted_scratch(const System& system, int threads) {
    if (system.rows < PivotedCall<float>::fewest_rows) return 0;
    return system.dtype == DType::f32 ? PivotedCall<float>::most_bytes(system, threads) : PivotedCall<double>::most_bytes(system, threads);
}

}  // namespace trifold::cpu
#endif
