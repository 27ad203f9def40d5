// SPDX-License-Identifier: BSD-3-Clause
#include "bench/harness/single_ceiling.hpp"

#include <chrono>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/harness/single_ceiling.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/tridiagonal/pivoted_group-inl.h"
#include "backends/cpu/tridiagonal/sweep_group-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trifold::bench::HWY_NAMESPACE {

namespace kernels = cpu::HWY_NAMESPACE;
using cpu::Work;

template <class T>
void certified(cpu::SweepJob<T>& job, Work work, std::int64_t group, T* scratch) {
    if (work == Work::move) kernels::sweep_group<T, Work::move>(job, group, scratch);
    else kernels::sweep_group<T, Work::move_and_wait>(job, group, scratch);
}
template <class T>
void pivoted(cpu::PivotedJob<T>& job, Work work, std::int64_t group, T* scratch) {
    if (work == Work::move) kernels::pivoted_group<T, Work::move>(job, group, scratch);
    else kernels::pivoted_group<T, Work::move_and_wait>(job, group, scratch);
}

void certified_f32(cpu::SweepJob<float>& job, Work work, std::int64_t group, float* scratch) { certified(job, work, group, scratch); }
void certified_f64(cpu::SweepJob<double>& job, Work work, std::int64_t group, double* scratch) { certified(job, work, group, scratch); }
void pivoted_f32(cpu::PivotedJob<float>& job, Work work, std::int64_t group, float* scratch) { pivoted(job, work, group, scratch); }
void pivoted_f64(cpu::PivotedJob<double>& job, Work work, std::int64_t group, double* scratch) { pivoted(job, work, group, scratch); }
std::int64_t lanes_f32() { return static_cast<std::int64_t>(kernels::lanes_of<hwy::HWY_NAMESPACE::ScalableTag<float>>); }
std::int64_t lanes_f64() { return static_cast<std::int64_t>(kernels::lanes_of<hwy::HWY_NAMESPACE::ScalableTag<double>>); }

}  // namespace trifold::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backends/cpu/tridiagonal/cell.hpp"
#include "backends/cpu/tridiagonal/pivoted_call.hpp"
#include "trifold/dtype.hpp"

namespace trifold::bench {
namespace {

HWY_EXPORT(certified_f32);
HWY_EXPORT(certified_f64);
HWY_EXPORT(pivoted_f32);
HWY_EXPORT(pivoted_f64);
HWY_EXPORT(lanes_f32);
HWY_EXPORT(lanes_f64);

void dispatch(cpu::SweepJob<float>& job, cpu::Work work, std::int64_t group, float* scratch) { HWY_DYNAMIC_DISPATCH(certified_f32)(job, work, group, scratch); }
void dispatch(cpu::SweepJob<double>& job, cpu::Work work, std::int64_t group, double* scratch) { HWY_DYNAMIC_DISPATCH(certified_f64)(job, work, group, scratch); }
void dispatch(cpu::PivotedJob<float>& job, cpu::Work work, std::int64_t group, float* scratch) { HWY_DYNAMIC_DISPATCH(pivoted_f32)(job, work, group, scratch); }
void dispatch(cpu::PivotedJob<double>& job, cpu::Work work, std::int64_t group, double* scratch) { HWY_DYNAMIC_DISPATCH(pivoted_f64)(job, work, group, scratch); }

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

tridiagonal::Launch launch_of(const tridiagonal::System& system, int threads, const AlignedBuffer& scratch) {
    tridiagonal::Launch launch;
    launch.threads = threads, launch.scratch = scratch.data(), launch.scratch_bytes = scratch.bytes();
    launch.tolerance = unit_roundoff(system.dtype);
    return launch;
}

}  // namespace

SingleCeiling::SingleCeiling(Pass pass, const tridiagonal::System& system, int threads) : pass_(pass), system_(system), numbers_(system) {
    const tridiagonal::Ops& ops = cpu::cpu_ops();
    // A matrix of numbers that forgets at once; what is computed does not depend on the numbers.
    tridiagonal::Operand* const operands[] = {&numbers_.lower, &numbers_.diag, &numbers_.upper, &numbers_.rhs};
    const double numbers[] = {-1, 4, -1, 1};
    for (int k = 0; k < 4; ++k) *operands[k] = {}, operands[k]->value = numbers[k];
    numbers_.in_place = false;
    const auto scratch_for = [&](const tridiagonal::System& s) {
        return AlignedBuffer(pass == Pass::certified ? tridiagonal::certified_workspace(ops, s, threads) : ops.sweep_pivoted_scratch(s, threads));
    };
    scratch_ = scratch_for(system_), numbers_scratch_ = scratch_for(numbers_);
    launch_ = launch_of(system_, threads, scratch_), numbers_launch_ = launch_of(numbers_, threads, numbers_scratch_);

    if (pass == Pass::certified) cut_ = tridiagonal::cut_certified(ops, system_, launch_);
    else block_ = system.dtype == DType::f32 ? cpu::PivotedCall<float>::block_for(system_) : cpu::PivotedCall<double>::block_for(system_);
    double best = std::numeric_limits<double>::infinity();
    for (int round = 0; round < 3; ++round)
        for (const cpu::Work work : {cpu::Work::move, cpu::Work::move_and_wait})
            if (const double s = move(work); s < best) best = s, work_ = work;
}

double SingleCeiling::computing() {
    Outcome outcome;
    const auto start = std::chrono::steady_clock::now();
    const bool solved = pass_ == Pass::certified ? tridiagonal::solve_certified(cpu::cpu_ops(), numbers_, numbers_launch_, outcome)
                                                 : cpu::cpu_ops().sweep_pivoted(numbers_, numbers_launch_);
    return solved ? seconds_since(start) : std::numeric_limits<double>::quiet_NaN();
}

double SingleCeiling::move(cpu::Work work) {
    const bool f32 = system_.dtype == DType::f32;
    if (pass_ == Pass::certified ? cut_.stretches.groups == 0 : block_ == 0) return std::numeric_limits<double>::quiet_NaN();
    const auto start = std::chrono::steady_clock::now();
    if (pass_ == Pass::certified) f32 ? move_certified<float>(work) : move_certified<double>(work);
    else if (f32) move_pivoted<float>(work, HWY_DYNAMIC_DISPATCH(lanes_f32)());
    else move_pivoted<double>(work, HWY_DYNAMIC_DISPATCH(lanes_f64)());
    return seconds_since(start);
}

template <class T>
void SingleCeiling::move_certified(cpu::Work work) {
    cpu::SweepJob<T> job(system_, cut_.stretches, scratch_.data());
    job.moved_halo = cut_.decay;
    job.ask_for(launch_.threads);
    job.each_group(launch_.threads, [&](std::int64_t group, T* scratch) { dispatch(job, work, group, scratch); });
}

template <class T>
void SingleCeiling::move_pivoted(cpu::Work work, std::int64_t lanes) {
    cpu::PivotedCall<T> call(system_, launch_, lanes, block_);
    if (call.fits) call.each_group(launch_.threads, [&](std::int64_t group, T* ring) { dispatch(call.job, work, group, ring); });
}

}  // namespace trifold::bench
#endif
