// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cpu/tridiagonal/group_kernel.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/tridiagonal/group_kernel.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/tridiagonal/group_factor-inl.h"
#include "backends/cpu/tridiagonal/group_solve-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {

template <class T>
std::uint32_t factor(const LaneGroup<T>& group, bool ring, T* kept) {
    const hn::ScalableTag<T> d;
    return ring ? factor_lanes<true>(d, group, kept) : factor_lanes<false>(d, group, kept);
}

template <class T>
void solve(const GroupSolve<T>& job, std::int64_t first, std::int64_t last, T* scratch) {
    using D = hn::ScalableTag<T>;
    const auto with = [&](auto ring, auto shared) { GroupSolver<D, ring, shared>(job, scratch).run(first, last); };
    if (job.ring) job.shared ? with(std::true_type(), std::true_type()) : with(std::true_type(), std::false_type());
    else job.shared ? with(std::false_type(), std::true_type()) : with(std::false_type(), std::false_type());
}

std::uint32_t factor_f32(const LaneGroup<float>& group, bool ring, float* kept) { return factor(group, ring, kept); }
std::uint32_t factor_f64(const LaneGroup<double>& group, bool ring, double* kept) { return factor(group, ring, kept); }
void solve_f32(const GroupSolve<float>& job, std::int64_t first, std::int64_t last, float* scratch) { solve(job, first, last, scratch); }
void solve_f64(const GroupSolve<double>& job, std::int64_t first, std::int64_t last, double* scratch) { solve(job, first, last, scratch); }

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trifold::cpu {

HWY_EXPORT(factor_f32);
HWY_EXPORT(factor_f64);
HWY_EXPORT(solve_f32);
HWY_EXPORT(solve_f64);

std::uint32_t factor_group(const LaneGroup<float>& group, bool ring, float* kept) { return HWY_DYNAMIC_DISPATCH(factor_f32)(group, ring, kept); }
std::uint32_t factor_group(const LaneGroup<double>& group, bool ring, double* kept) { return HWY_DYNAMIC_DISPATCH(factor_f64)(group, ring, kept); }
void solve_groups(const GroupSolve<float>& job, std::int64_t first, std::int64_t last, float* scratch) { HWY_DYNAMIC_DISPATCH(solve_f32)(job, first, last, scratch); }
void solve_groups(const GroupSolve<double>& job, std::int64_t first, std::int64_t last, double* scratch) { HWY_DYNAMIC_DISPATCH(solve_f64)(job, first, last, scratch); }

}  // namespace trifold::cpu
#endif
