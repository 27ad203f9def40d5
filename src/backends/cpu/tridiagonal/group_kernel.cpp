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
std::uint32_t factor(const LaneGroup<T>& group, bool ring, T* kept, bool gives_up) {
    const hn::ScalableTag<T> d;
    return ring ? factor_lanes<true>(d, group, kept, gives_up) : factor_lanes<false>(d, group, kept, gives_up);
}

template <class T>
void solve(const GroupSolve<T>& job, std::int64_t first, std::int64_t last, T* scratch) {
    using D = hn::ScalableTag<T>;
    const auto with = [&](auto ring, auto shared) { GroupSolver<D, ring, shared>(job, scratch).run(first, last); };
    if (job.ring) job.shared ? with(std::true_type(), std::true_type()) : with(std::true_type(), std::false_type());
    else job.shared ? with(std::false_type(), std::true_type()) : with(std::false_type(), std::false_type());
}

template <class T>
void gather(const LaneGroup<T>& group, const LaneOperand<T>& from, std::int64_t rows, std::int64_t low, std::int64_t cut, T outside, T* to) {
    using Tiles = GroupTiles<hn::ScalableTag<T>>;
    constexpr int W = Tiles::W;
    alignas(64) T stage[W * W];
    for (std::int64_t i = 0; i < rows; i += W, to += W * W) {
        const int count = static_cast<int>(std::min<std::int64_t>(W, rows - i));
        const auto square = Tiles::load(group, from, i, count, low, cut, outside, count == W ? to : stage);
        if (square.row == to && square.step == W) continue;
        for (int r = count - 1; r >= 0; --r)
            if (to + r * W != square.row + r * square.step) std::copy_n(square.row + r * square.step, W, to + r * W);
    }
}

template <class T>
void scatter(const LaneGroup<T>& group, const T* from, std::uint32_t skip, bool accumulate) {
    using Tiles = GroupTiles<hn::ScalableTag<T>>;
    constexpr int W = Tiles::W;
    for (std::int64_t i = 0; i < group.longest; i += W)
        Tiles::scatter(group, from + i * W, W, i, static_cast<int>(std::min<std::int64_t>(W, group.longest - i)), 0, skip, accumulate);
}

template <class T>
void close(const RingLines<T>& rings) {
    const hn::ScalableTag<T> d;
    using V = hn::Vec<decltype(d)>;
    constexpr int W = group_lanes<T>, N = static_cast<int>(lanes_of<decltype(d)>);
    const V zero = hn::Zero(d);
    for (int k = 0; k < W; k += N) {
        const auto line = [&](const LaneLines<T>& of, std::int64_t i) HWY_ATTR { return of.data ? hn::LoadU(d, of.data + i * of.step + k) : hn::Set(d, of.value); };
        const V last = hn::LoadU(d, rings.last + k), own = hn::LoadU(d, rings.own + k);
        T* const y = rings.y + k;
        for (std::int64_t i = 0; i < rings.rows; ++i) hn::StoreU(hn::MulAdd(hn::LoadU(d, rings.z + i * W + k), last, hn::LoadU(d, y + i * W)), d, y + i * W);
        V left = hn::LoadU(d, rings.left + k), matrix = hn::LoadU(d, rings.matrix + k), largest = hn::LoadU(d, rings.largest + k), finite = zero;
        for (std::int64_t i = 1; i + 1 < rings.rows; ++i) {
            const auto inside = hn::Lt(hn::Set(d, static_cast<T>(i + 1)), own);
            const V a = line(rings.lower, i), b = line(rings.diag, i), c = line(rings.upper, i), x = hn::LoadU(d, y + i * W);
            V off = hn::NegMulAdd(a, hn::LoadU(d, y + (i - 1) * W), line(rings.rhs, i));
            off = hn::IfThenElseZero(inside, hn::NegMulAdd(c, hn::LoadU(d, y + (i + 1) * W), hn::NegMulAdd(b, x, off)));
            finite = hn::MulAdd(off, zero, finite);
            left = hn::Max(left, hn::Abs(off));
            matrix = hn::Max(matrix, hn::IfThenElseZero(inside, hn::Add(hn::Add(hn::Abs(a), hn::Abs(b)), hn::Abs(c))));
            largest = hn::Max(largest, hn::IfThenElseZero(inside, hn::Abs(x)));
        }
        hn::StoreU(hn::Add(left, finite), d, rings.left + k), hn::StoreU(matrix, d, rings.matrix + k), hn::StoreU(largest, d, rings.largest + k);
    }
}

void close_f32(const RingLines<float>& rings) { close(rings); }
void close_f64(const RingLines<double>& rings) { close(rings); }
void gather_f32(const LaneGroup<float>& group, const LaneOperand<float>& from, std::int64_t rows, std::int64_t low, std::int64_t cut, float outside, float* to) { gather(group, from, rows, low, cut, outside, to); }
void gather_f64(const LaneGroup<double>& group, const LaneOperand<double>& from, std::int64_t rows, std::int64_t low, std::int64_t cut, double outside, double* to) { gather(group, from, rows, low, cut, outside, to); }
void scatter_f32(const LaneGroup<float>& group, const float* from, std::uint32_t skip, bool accumulate) { scatter(group, from, skip, accumulate); }
void scatter_f64(const LaneGroup<double>& group, const double* from, std::uint32_t skip, bool accumulate) { scatter(group, from, skip, accumulate); }

std::uint32_t factor_f32(const LaneGroup<float>& group, bool ring, float* kept, bool gives_up) { return factor(group, ring, kept, gives_up); }
std::uint32_t factor_f64(const LaneGroup<double>& group, bool ring, double* kept, bool gives_up) { return factor(group, ring, kept, gives_up); }
void solve_f32(const GroupSolve<float>& job, std::int64_t first, std::int64_t last, float* scratch) { solve(job, first, last, scratch); }
void solve_f64(const GroupSolve<double>& job, std::int64_t first, std::int64_t last, double* scratch) { solve(job, first, last, scratch); }

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trifold::cpu {

HWY_EXPORT(close_f32);
HWY_EXPORT(close_f64);
HWY_EXPORT(gather_f32);
HWY_EXPORT(gather_f64);
HWY_EXPORT(scatter_f32);
HWY_EXPORT(scatter_f64);
HWY_EXPORT(factor_f32);
HWY_EXPORT(factor_f64);
HWY_EXPORT(solve_f32);
HWY_EXPORT(solve_f64);

void close_rings(const RingLines<float>& rings) { HWY_DYNAMIC_DISPATCH(close_f32)(rings); }
void close_rings(const RingLines<double>& rings) { HWY_DYNAMIC_DISPATCH(close_f64)(rings); }
void gather_lanes(const LaneGroup<float>& group, const LaneOperand<float>& from, std::int64_t rows, std::int64_t low, std::int64_t cut, float outside, float* to) {
    HWY_DYNAMIC_DISPATCH(gather_f32)(group, from, rows, low, cut, outside, to);
}
void gather_lanes(const LaneGroup<double>& group, const LaneOperand<double>& from, std::int64_t rows, std::int64_t low, std::int64_t cut, double outside, double* to) {
    HWY_DYNAMIC_DISPATCH(gather_f64)(group, from, rows, low, cut, outside, to);
}
void scatter_lanes(const LaneGroup<float>& group, const float* from, std::uint32_t skip, bool accumulate) { HWY_DYNAMIC_DISPATCH(scatter_f32)(group, from, skip, accumulate); }
void scatter_lanes(const LaneGroup<double>& group, const double* from, std::uint32_t skip, bool accumulate) { HWY_DYNAMIC_DISPATCH(scatter_f64)(group, from, skip, accumulate); }

std::uint32_t factor_group(const LaneGroup<float>& group, bool ring, float* kept, bool gives_up) { return HWY_DYNAMIC_DISPATCH(factor_f32)(group, ring, kept, gives_up); }
std::uint32_t factor_group(const LaneGroup<double>& group, bool ring, double* kept, bool gives_up) { return HWY_DYNAMIC_DISPATCH(factor_f64)(group, ring, kept, gives_up); }
void solve_groups(const GroupSolve<float>& job, std::int64_t first, std::int64_t last, float* scratch) { HWY_DYNAMIC_DISPATCH(solve_f32)(job, first, last, scratch); }
void solve_groups(const GroupSolve<double>& job, std::int64_t first, std::int64_t last, double* scratch) { HWY_DYNAMIC_DISPATCH(solve_f64)(job, first, last, scratch); }

}  // namespace trifold::cpu
#endif
