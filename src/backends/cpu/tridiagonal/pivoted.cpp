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
#include "backends/cpu/tridiagonal/sweep_ends.hpp"

namespace trifold::cpu {
namespace {

HWY_EXPORT(pivoted_lanes_f32);
HWY_EXPORT(pivoted_lanes_f64);
HWY_EXPORT(pivoted_group_f32);
HWY_EXPORT(pivoted_group_f64);

using namespace tridiagonal;

// Below this many rows stretches would be too short for their halos, or too few for the threads.
constexpr std::int64_t fewest_rows = std::int64_t{1} << 19;
// Below this many bytes of x and coefficients a solve may still find them in the last-level cache.
constexpr std::int64_t cached_bytes = std::int64_t{64} << 20;

void dispatch(PivotedJob<float>& job, std::int64_t group, float* scratch) { HWY_DYNAMIC_DISPATCH(pivoted_group_f32)(job, group, scratch); }
void dispatch(PivotedJob<double>& job, std::int64_t group, double* scratch) { HWY_DYNAMIC_DISPATCH(pivoted_group_f64)(job, group, scratch); }

template <class T>
std::size_t seam_bytes(std::int64_t stretches) { return (stretches * sizeof(PivotedSeam<T>) + 63) / 64 * 64; }

/// Constants of the arrays and rings of the threads.
template <class T>
std::size_t own_bytes(std::int64_t block, int threads) { return (4 * line<T> + threads * PivotedJob<T>::ring(block)) * sizeof(T); }

/// Enough for any block.
template <class T>
std::size_t most_bytes(const System& system, int threads) {
    const std::int64_t block = PivotedCut::longest(system.rows, line<T>) + 3 * PivotedCut::unit;
    const std::int64_t stretches = system.rows / (PivotedCut::shortest * PivotedCut::fewest) + 2 * line<T>;
    const std::size_t undo = system.in_place ? PivotedUndo<T>::most_bytes(system.rows, block, line<T>, stretches) : 0;
    return seam_bytes<T>(stretches) + own_bytes<T>(block, threads) + undo;
}

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
    const double unit = unit_roundoff(system.dtype);
    const std::int64_t longest = PivotedCut::longest(system.rows, line<T>), slowest = pivoted_decay(system, unit / 4, longest / 2);
    // Some rows forget later than those that were looked at. Where even this is too soon, blocks do not agree.
    const std::int64_t wanted = (9 * slowest / 4 + 32 + PivotedCut::unit - 1) / PivotedCut::unit * PivotedCut::unit;
    if (wanted > longest) return false;

    SweepArrays<T> arrays;
    arrays.x = static_cast<T*>(system.x.data), arrays.rows = system.rows, arrays.in_place = system.in_place;
    const std::int64_t misaligned = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(arrays.x) / sizeof(T) % line<T>);
    const PivotedCut cut(system.rows, lanes, misaligned, std::max(wanted, PivotedCut::shortest), line<T>);
    const std::int64_t stretches = cut.groups * cut.lanes;
    const std::size_t undo_bytes = system.in_place ? PivotedUndo<T>::bytes(cut) : 0;
    if (launch.scratch_bytes < seam_bytes<T>(stretches) + own_bytes<T>(cut.block, launch.threads) + undo_bytes) return false;
    char* at = static_cast<char*>(launch.scratch);
    PivotedSeam<T>* const seams = reinterpret_cast<PivotedSeam<T>*>(at);
    at += seam_bytes<T>(stretches);
    const Operand* operands[4] = {&system.lower, &system.diag, &system.upper, &system.rhs};
    for (int k = 0; k < 4; ++k, at += 64) {
        const bool view = operands[k]->kind == Operand::Kind::view;
        T* const constants = reinterpret_cast<T*>(at);
        std::fill_n(constants, line<T>, static_cast<T>(operands[k]->value));
        arrays.data[k] = view ? static_cast<const T*>(operands[k]->data) : constants;
        arrays.step[k] = view;
    }
    T* const rings = reinterpret_cast<T*>(at);
    const bool stream = !system.in_place && 5 * system.rows * static_cast<std::int64_t>(sizeof(T)) > cached_bytes;
    PivotedUndo<T> undo;
    if (system.in_place) undo.take(cut, at + launch.threads * PivotedJob<T>::ring(cut.block) * sizeof(T));
    PivotedJob<T> job{arrays, cut, static_cast<T>(4 * unit), stream, seams, system.in_place ? &undo : nullptr};
#pragma omp parallel num_threads(launch.threads)
    {
        if (job.undo) {
#pragma omp for schedule(static)
            for (std::int64_t stretch = 0; stretch <= stretches; ++stretch) undo.save_seam(arrays, cut, stretch);
        }
#pragma omp for schedule(dynamic, 1)
        for (std::int64_t group = 0; group < cut.groups; ++group)
            if (!job.stop.load(std::memory_order_relaxed)) dispatch(job, group, rings + thread_number() * PivotedJob<T>::ring(cut.block));
    }
    if (!job.stop.load() && agree(job, unit)) return true;
    if (job.undo) {
#pragma omp parallel for num_threads(launch.threads) schedule(dynamic, 1)
        for (std::int64_t group = 0; group < cut.groups; ++group) undo.restore(arrays, cut, group);
    }
    return false;
}

}  // namespace

bool sweep_pivoted(const System& system, const Launch& launch) {
    if (system.rows < fewest_rows) return false;
    if (system.dtype == DType::f32) return run<float>(system, launch, HWY_DYNAMIC_DISPATCH(pivoted_lanes_f32)());
    return run<double>(system, launch, HWY_DYNAMIC_DISPATCH(pivoted_lanes_f64)());
}

std::size_t pivoted_scratch(const System& system, int threads) {
    if (system.rows < fewest_rows) return 0;
    return system.dtype == DType::f32 ? most_bytes<float>(system, threads) : most_bytes<double>(system, threads);
}

}  // namespace trifold::cpu
#endif
