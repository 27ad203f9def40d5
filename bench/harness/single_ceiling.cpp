// SPDX-License-Identifier: BSD-3-Clause
#include "bench/harness/single_ceiling.hpp"

#include <chrono>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/harness/single_ceiling.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/tridiagonal/finish_known-inl.h"
#include "backends/cpu/tridiagonal/pivoted_group-inl.h"
#include "backends/cpu/tridiagonal/reduce_dominant-inl.h"
#include "backends/cpu/tridiagonal/reduce_two_row-inl.h"
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

/// One thread's share of the first or of the second of two passes, in the order of reduce.cpp and finish.cpp.
template <class T>
void two_pass(const cpu::FinishCall<T>& call, bool dominant, bool second, int part, int parts, const cpu::ChunkWork<T>& scratch, tridiagonal::InterfaceRow* rows,
              std::int64_t* zero_pivot) {
    using D = hwy::HWY_NAMESPACE::ScalableTag<T>;
    constexpr std::int64_t lanes = static_cast<std::int64_t>(kernels::lanes_of<D>), pair = 2 * lanes;
    const std::int64_t groups = (call.partition.chunks() - 1) / pair, low = groups * part / parts, high = groups * (part + 1) / parts;
    for (std::int64_t k = low; k < high; ++k) {
        const std::int64_t first = (second ? low + high - 1 - k : k) * pair, next = second ? std::max<std::int64_t>(first - pair, 0) : first + pair;
        const cpu::ChunkGroup<T> g[2] = {cpu::group_of(call.arrays, call.partition, first, lanes, scratch.defects),
                                         cpu::group_of(call.arrays, call.partition, first + lanes, lanes, scratch.defects)};
        const kernels::Ahead<T> ahead(call.arrays, next);
        if (second && dominant) kernels::finish_known<kernels::DominantFinish<D, Work::move>, 2>(D(), call, g, ahead, scratch);
        else if (second) kernels::finish_known<kernels::TwoRowFinish<D, Work::move>, 2>(D(), call, g, ahead, scratch);
        else if (dominant) kernels::reduce_dominant<2, Work::move>(D(), g, ahead, rows, zero_pivot);
        else kernels::reduce_two_row<2, Work::move>(D(), g, ahead, rows, zero_pivot);
    }
    if (second && call.stream) hwy::FlushStream();
}

void two_pass_f32(const cpu::FinishCall<float>& call, bool dominant, bool second, int part, int parts, const cpu::ChunkWork<float>& scratch, tridiagonal::InterfaceRow* rows,
                  std::int64_t* zero_pivot) {
    two_pass(call, dominant, second, part, parts, scratch, rows, zero_pivot);
}
void two_pass_f64(const cpu::FinishCall<double>& call, bool dominant, bool second, int part, int parts, const cpu::ChunkWork<double>& scratch, tridiagonal::InterfaceRow* rows,
                  std::int64_t* zero_pivot) {
    two_pass(call, dominant, second, part, parts, scratch, rows, zero_pivot);
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
#include "families/tridiagonal/two_pass.hpp"
#include "trifold/dtype.hpp"

namespace trifold::bench {
namespace {

HWY_EXPORT(certified_f32);
HWY_EXPORT(certified_f64);
HWY_EXPORT(pivoted_f32);
HWY_EXPORT(pivoted_f64);
HWY_EXPORT(two_pass_f32);
HWY_EXPORT(two_pass_f64);
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
    // A matrix of numbers that forgets at once, or never; what is computed does not depend on the numbers.
    tridiagonal::Operand* const operands[] = {&numbers_.lower, &numbers_.diag, &numbers_.upper, &numbers_.rhs};
    const double forgets[] = {-1, 4, -1, 1}, waves[] = {1, 0.5, 1, 1}, poisson[] = {-1, 2, -1, 1};
    for (int k = 0; k < 4; ++k) *operands[k] = {}, operands[k]->value = (pass == Pass::two_pass ? waves : pass == Pass::dominant ? poisson : forgets)[k];
    numbers_.in_place = false;
    const auto scratch_for = [&](const tridiagonal::System& s) {
        if (twice()) return AlignedBuffer(tridiagonal::two_pass_workspace(ops, s, threads));
        return AlignedBuffer(pass == Pass::certified ? tridiagonal::certified_workspace(ops, s, threads) : ops.sweep_pivoted_scratch(s, threads));
    };
    scratch_ = scratch_for(system_), numbers_scratch_ = scratch_for(numbers_);
    launch_ = launch_of(system_, threads, scratch_), numbers_launch_ = launch_of(numbers_, threads, numbers_scratch_);

    if (twice()) {
        partition_ = {system_.rows, tridiagonal::two_pass_chunk_rows(system_.rows, system_.dtype)};
        rows_.resize(2 * partition_.chunks()), zero_pivot_.resize(partition_.chunks()), boundary_.resize(2 * partition_.chunks()), residuals_.resize(partition_.chunks());
        return;
    }
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
    if (twice()) {
        const Outcome two = tridiagonal::solve_two_pass(cpu::cpu_ops(), numbers_, numbers_launch_);
        return two.reason == Reason::exact ? seconds_since(start) : std::numeric_limits<double>::quiet_NaN();
    }
    const bool solved = pass_ == Pass::certified ? tridiagonal::solve_certified(cpu::cpu_ops(), numbers_, numbers_launch_, outcome)
                                                 : cpu::cpu_ops().sweep_pivoted(numbers_, numbers_launch_);
    return solved ? seconds_since(start) : std::numeric_limits<double>::quiet_NaN();
}

double SingleCeiling::move(cpu::Work work) {
    const bool f32 = system_.dtype == DType::f32;
    if (twice()) {
        const auto start = std::chrono::steady_clock::now();
        f32 ? move_two_pass<float>() : move_two_pass<double>();
        return seconds_since(start);
    }
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
void SingleCeiling::move_two_pass() {
    constexpr std::int64_t cached = cpu::PivotedCall<T>::cached_bytes;
    const bool stream = !system_.in_place && 5 * system_.rows * static_cast<std::int64_t>(sizeof(T)) > cached;
    const cpu::FinishCall<T> call{cpu::chunk_arrays<T>(system_, partition_, scratch_.data()), partition_, boundary_.data(), std::numeric_limits<double>::infinity(), residuals_.data(), stream, true};
    for (const bool second : {false, true}) {
#pragma omp parallel for num_threads(launch_.threads) schedule(static, 1)
        for (int thread = 0; thread < launch_.threads; ++thread) {
            const auto work = cpu::ChunkWork<T>::of(scratch_.data(), partition_.chunk_rows, thread);
            if constexpr (sizeof(T) == 4) HWY_DYNAMIC_DISPATCH(two_pass_f32)(call, pass_ == Pass::dominant, second, thread, launch_.threads, work, rows_.data(), zero_pivot_.data());
            else HWY_DYNAMIC_DISPATCH(two_pass_f64)(call, pass_ == Pass::dominant, second, thread, launch_.threads, work, rows_.data(), zero_pivot_.data());
        }
    }
}

template <class T>
void SingleCeiling::move_pivoted(cpu::Work work, std::int64_t lanes) {
    cpu::PivotedCall<T> call(system_, launch_, lanes, block_);
    if (call.fits) call.each_group(launch_.threads, [&](std::int64_t group, T* ring) { dispatch(call.job, work, group, ring); });
}

}  // namespace trifold::bench
#endif
