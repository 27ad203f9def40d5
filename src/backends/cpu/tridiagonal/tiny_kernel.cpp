// SPDX-License-Identifier: BSD-3-Clause
// Lanes = systems that were copied side by side: LU with partial pivoting, as gtsv has it.
//
//   Numerics  exchanges are selections, |multiplier| ≤ 1. What is not finite in the matrix or in rhs is remembered beside: an infinite pivot would leave x = 0
//   Work      one quotient per row, that the next row waits for; in between other vectors of the group, and the next group
#include "backends/cpu/tridiagonal/tiny_kernel.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/tridiagonal/tiny_kernel.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Four vectors, from lane j on; bit 0 of what it returns is lane j's.
template <class T, class D>
HWY_INLINE HWY_ATTR std::uint64_t solve_vectors(D d, TinyGroup<T>& group, std::int64_t rows, int j) {
    using V = hn::Vec<D>;
    constexpr int W = tiny_lanes<T>;
    const int n = static_cast<int>(hn::Lanes(d));
    struct Eliminated {
        T inverse[W], above[W], beyond[W];
    };
    alignas(64) Eliminated of[tiny_rows];
    const V zero = hn::Zero(d), one = hn::Set(d, T(1));
    struct Pending {
        V diag, upper, rhs, poison;
    };
    const auto begin = [&](int at) HWY_ATTR {
        const V diag = hn::Load(d, &group.row[0].diag[at]), upper = hn::Load(d, &group.row[0].upper[at]), rhs = hn::Load(d, &group.row[0].rhs[at]);
        return Pending{diag, upper, rhs, hn::MulAdd(zero, diag, hn::MulAdd(zero, upper, hn::Mul(zero, rhs)))};
    };
    const auto eliminate = [&](Pending& row, std::int64_t i, int at) HWY_ATTR {
        const V a = hn::Load(d, &group.row[i + 1].lower[at]), b = hn::Load(d, &group.row[i + 1].diag[at]), c = hn::Load(d, &group.row[i + 1].upper[at]), f = hn::Load(d, &group.row[i + 1].rhs[at]);
        row.poison = hn::MulAdd(zero, a, hn::MulAdd(zero, b, row.poison)), row.poison = hn::MulAdd(zero, c, hn::MulAdd(zero, f, row.poison));
        const auto exchange = hn::Gt(hn::Abs(a), hn::Abs(row.diag));
        const V over = hn::Div(one, hn::IfThenElse(exchange, a, row.diag)), m = hn::Mul(hn::IfThenElse(exchange, row.diag, a), over);
        const V near = hn::IfThenElse(exchange, b, row.upper), far = hn::IfThenElseZero(exchange, c), value = hn::IfThenElse(exchange, f, row.rhs);
        hn::Store(over, d, &of[i].inverse[at]), hn::Store(near, d, &of[i].above[at]), hn::Store(far, d, &of[i].beyond[at]), hn::Store(value, d, &group.row[i].rhs[at]);
        row.diag = hn::NegMulAdd(m, near, hn::IfThenElse(exchange, row.upper, b));
        row.upper = hn::NegMulAdd(m, far, hn::IfThenZeroElse(exchange, c));
        row.rhs = hn::NegMulAdd(m, value, hn::IfThenElse(exchange, row.rhs, f));
    };
    struct Solved {
        V x, after;
    };
    const auto last = [&](Pending& row, int at) HWY_ATTR {
        const Solved solved{hn::Mul(row.rhs, hn::Div(one, row.diag)), zero};
        hn::Store(solved.x, d, &group.row[rows - 1].rhs[at]);
        row.poison = hn::MulAdd(zero, solved.x, row.poison);
        return solved;
    };
    const auto substitute = [&](Solved& solved, Pending& row, std::int64_t i, int at) HWY_ATTR {
        const V rest = hn::NegMulAdd(hn::Load(d, &of[i].beyond[at]), solved.after, hn::Load(d, &group.row[i].rhs[at]));
        solved.after = solved.x;
        solved.x = hn::Mul(hn::NegMulAdd(hn::Load(d, &of[i].above[at]), solved.x, rest), hn::Load(d, &of[i].inverse[at]));
        hn::Store(solved.x, d, &group.row[i].rhs[at]);
        row.poison = hn::MulAdd(zero, solved.x, row.poison);
    };
    const auto refused = [&](const Pending& row) HWY_ATTR {
        std::uint8_t bits[8] = {};
        hn::StoreMaskBits(d, hn::Not(hn::Eq(row.poison, zero)), bits);  // NaN differs from nothing
        return static_cast<std::uint64_t>(bits[0]) | static_cast<std::uint64_t>(bits[1]) << 8;
    };
    const int j1 = j + n, j2 = j + 2 * n, j3 = j + 3 * n;
    Pending p0 = begin(j), p1 = begin(j1), p2 = begin(j2), p3 = begin(j3);
    for (std::int64_t i = 0; i + 1 < rows; ++i) eliminate(p0, i, j), eliminate(p1, i, j1), eliminate(p2, i, j2), eliminate(p3, i, j3);
    Solved s0 = last(p0, j), s1 = last(p1, j1), s2 = last(p2, j2), s3 = last(p3, j3);
    for (std::int64_t i = rows - 2; i >= 0; --i) substitute(s0, p0, i, j), substitute(s1, p1, i, j1), substitute(s2, p2, i, j2), substitute(s3, p3, i, j3);
    return refused(p0) | refused(p1) << n | refused(p2) << 2 * n | refused(p3) << 3 * n;
}

template <class T>
HWY_ATTR std::uint64_t solve(TinyGroup<T>& group, std::int64_t rows) {
    const hn::CappedTag<T, group_lanes<T>> d;
    const int n = static_cast<int>(hn::Lanes(d));
    std::uint64_t bad = 0;
    for (int j = 0; j < tiny_lanes<T>; j += 4 * n) bad |= solve_vectors<T>(d, group, rows, j) << j;
    return bad;
}

std::uint64_t solve_f32(TinyGroup<float>& group, std::int64_t rows) { return solve(group, rows); }
std::uint64_t solve_f64(TinyGroup<double>& group, std::int64_t rows) { return solve(group, rows); }

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trifold::cpu {

HWY_EXPORT(solve_f32);
HWY_EXPORT(solve_f64);

std::uint64_t solve_tiny_group(TinyGroup<float>& group, std::int64_t rows) { return HWY_DYNAMIC_DISPATCH(solve_f32)(group, rows); }
std::uint64_t solve_tiny_group(TinyGroup<double>& group, std::int64_t rows) { return HWY_DYNAMIC_DISPATCH(solve_f64)(group, rows); }

}  // namespace trifold::cpu
#endif
