// SPDX-License-Identifier: BSD-3-Clause
// One small system: latency is all that counts.
//
// Equation   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],  i = 0 … n-1,  n ≤ 1024
// Arrays     rows side by side are read where they lie; others, and scalars, are copied to the stack first (frame: six times n words)
//            Up to 8192 rows the same in scratch, where two_pass takes what needs pivots
// Writes     x, once all of it is known to be good; nothing otherwise
// Work       one thread. Rows 0 … m-1 are eliminated downwards and rows n-1 … m+1 upwards, in one loop, and meet in row m = n/2. Each
//            chain waits for a product, a difference, a division and a product per row, then for a product and a difference: 28 cycles
//            (Zen 4, FP64). Both wait at the same time, so that n rows take half of what the textbook's one chain takes
// Numerics   A = L U with rows in the order 0 … m-1, n-1 … m+1, m, not pivoted: c'_i = c_i / p_i from above, a'_j = a_j / p_j from below.
//            Taken when |a_i c'_{i-1}| ≤ 4 max(|a_i|, |b_i|, |c_i|), |c_j a'_{j+1}| likewise, and the sum of both in row m: |L||U| is then at
//            most 9 times the largest entry of its row, which bounds the backward error by about 9 u (Higham, Accuracy and Stability of
//            Numerical Algorithms, 2nd ed., section 9.6). The first row for which it does not hold sends the system to gtsv's partial pivoting.
// Source     Thomas 1949; Babuška 1972 (from both ends); Anderson et al., LAPACK Users' Guide (gtsv)
#include "backends/cpu/tridiagonal/small.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/tridiagonal/values.hpp"

namespace trifold::cpu {
namespace {

using tridiagonal::Operand;
using tridiagonal::System;

/// Rows of one operand side by side, where they are or, if they are not, in `copy`.
template <class T>
const T* side_by_side(const Operand& operand, std::int64_t first, std::int64_t last, T* copy) {
    if (operand.kind != Operand::Kind::view) {
        std::fill(copy + first, copy + last, static_cast<T>(operand.value));
        return copy;
    }
    const T* const data = static_cast<const T*>(operand.data);
    if (operand.row_stride == 1) return data;
    for (std::int64_t i = first; i < last; ++i) copy[i] = data[i * operand.row_stride];
    return copy;
}

/// The rows of a system; room: four times as many words as rows.
template <class T>
struct Rows {
    const T *a, *b, *c, *d;

    Rows(const System& system, T* room)
        : a(side_by_side(system.lower, 1, system.rows, room)), b(side_by_side(system.diag, 0, system.rows, room + system.rows)),
          c(side_by_side(system.upper, 0, system.rows - 1, room + 2 * system.rows)), d(side_by_side(system.rhs, 0, system.rows, room + 3 * system.rows)) {}
};

template <class T>
void store(const System& system, const T* from) {
    T* const x = static_cast<T*>(system.x.data);
    const std::int64_t n = system.rows, stride = system.x.row_stride;
    if (stride == 1) std::copy(from, from + n, x);
    else
        for (std::int64_t i = 0; i < n; ++i) x[i * stride] = from[i];
}

/// One end of the elimination.
template <class T>
struct Chain {
    T coupling = 0, value = 0;

    /// The next row: `back` is its entry where the chain comes from, `on` where it goes to. Whether it is as good as with a pivot. A
    /// reciprocal that is not normal has lost digits; a pivot of zero leaves a coupling that is infinite or NaN, which the next row refuses.
    bool take(T back, T diag, T on, T rhs, T& kept_coupling, T& kept_value) {
        constexpr T growth = 4;
        const T update = back * coupling, r = T(1) / (diag - update);
        value = (rhs - back * value) * r;
        coupling = on * r;
        kept_coupling = coupling, kept_value = value;
        const T largest = std::max(std::max(std::abs(back), std::abs(on)), std::abs(diag));
        return (std::abs(update) <= growth * largest) & (std::abs(r) >= std::numeric_limits<T>::min());
    }
};

/// y: the solution, where the elimination is as good as one with pivots. coupling: room for n numbers.
template <class T>
bool twisted(std::int64_t n, const T* a, const T* b, const T* c, const T* d, T* y, T* coupling) {
    const std::int64_t m = n / 2, above = m, below = n - 1 - m;
    Chain<T> down, up;
    if (above > 0 && !down.take(0, b[0], c[0], d[0], coupling[0], y[0])) return false;
    if (below > 0 && !up.take(0, b[n - 1], a[n - 1], d[n - 1], coupling[n - 1], y[n - 1])) return false;
    for (std::int64_t i = 1, j = n - 2; i < below; ++i, --j) {
        const bool first = down.take(a[i], b[i], c[i], d[i], coupling[i], y[i]);
        if (!(first & up.take(c[j], b[j], a[j], d[j], coupling[j], y[j]))) return false;
    }
    if (above > below && above > 1 && !down.take(a[m - 1], b[m - 1], c[m - 1], d[m - 1], coupling[m - 1], y[m - 1])) return false;

    constexpr T growth = 4;
    const T am = above > 0 ? a[m] : T(0), cm = below > 0 ? c[m] : T(0), from_above = am * down.coupling, from_below = cm * up.coupling;
    const T largest = std::max(std::max(std::abs(am), std::abs(cm)), std::abs(b[m])), pivot = b[m] - (from_above + from_below);
    if (!(std::abs(from_above) + std::abs(from_below) <= growth * largest)) return false;
    if (!std::isfinite(pivot)) return false;  // x would be a finite 0 there
    T before = (d[m] - (am * down.value + cm * up.value)) / pivot, after = before;  // sums: the same bits from the other end where n is odd
    y[m] = before;
    T sum_before = std::abs(before), sum_after = 0;
    for (std::int64_t i = m - 1, j = m + 1; j < n; --i, ++j) {
        y[i] = before = y[i] - coupling[i] * before;
        y[j] = after = y[j] - coupling[j] * after;
        sum_before += std::abs(before), sum_after += std::abs(after);
    }
    if (above > below) y[0] = before = y[0] - coupling[0] * before, sum_before += std::abs(before);
    return std::isfinite(sum_before + sum_after);
}

/// u0, u1, u2: room for n numbers; they may lie over a, b and c.
template <class T>
void lu(std::int64_t n, const T* a, const T* b, const T* c, const T* d, T* u0, T* u1, T* u2, T* y, Outcome& outcome) {
    T diag = b[0], upper = n > 1 ? c[0] : T(0), right = d[0];
    for (std::int64_t i = 0; i + 1 < n; ++i) {
        const T below = a[i + 1];
        T next_diag = b[i + 1], next_upper = i + 2 < n ? c[i + 1] : T(0), next_right = d[i + 1], second = 0;
        if (std::fabs(diag) >= std::fabs(below)) {
            if (diag == T(0)) {
                outcome.reason = Reason::singular, outcome.row = i;
                return;
            }
            const T m = below / diag;
            next_diag = next_diag - m * upper;
            next_right = next_right - m * right;
        } else {
            const T m = diag / below;
            second = next_upper;
            const T kept_diag = next_diag, kept_right = next_right;
            next_diag = upper - m * kept_diag;
            next_upper = -m * second;
            next_right = right - m * kept_right;
            diag = below, upper = kept_diag, right = kept_right;
        }
        if (!std::isfinite(diag)) {  // x would be a finite 0 there
            outcome.reason = Reason::not_finite, outcome.row = i;
            return;
        }
        u0[i] = diag, u1[i] = upper, u2[i] = second, y[i] = right;
        diag = next_diag, upper = next_upper, right = next_right;
    }
    if (diag == T(0)) {
        outcome.reason = Reason::singular, outcome.row = n - 1;
        return;
    }
    if (!std::isfinite(diag)) {
        outcome.reason = Reason::not_finite, outcome.row = n - 1;
        return;
    }
    y[n - 1] = right / diag;
    if (n > 1) y[n - 2] = (y[n - 2] - u1[n - 2] * y[n - 1]) / u0[n - 2];
    for (std::int64_t i = n - 3; i >= 0; --i) y[i] = (y[i] - u1[i] * y[i + 1] - u2[i] * y[i + 2]) / u0[i];
    for (std::int64_t i = 0; i < n; ++i)
        if (!std::isfinite(y[i])) {
            outcome.reason = Reason::not_finite, outcome.row = i;
            return;
        }
    outcome.reason = Reason::exact;
}

template <class T, int capacity>
void solve_in(const System& system, Outcome& outcome) {
    const std::int64_t n = system.rows;
    T y[capacity], room[4 * capacity], coupling[capacity];
    const Rows<T> rows(system, room);
    if (twisted<T>(n, rows.a, rows.b, rows.c, rows.d, y, coupling)) {
        store(system, y);
        outcome.reason = Reason::exact;
        outcome.branch = "twisted";
        return;
    }
    outcome.branch = "lu";
    outcome.tried_other = true;
    lu<T>(n, rows.a, rows.b, rows.c, rows.d, room, room + n, room + 2 * n, y, outcome);
    if (outcome.ok()) {
        store(system, y);
        outcome.rescued = 1;
        return;
    }
    outcome.failures = 1, outcome.system = system.number;
    if (outcome.reason != Reason::not_finite) return;
    if (const std::int64_t row = first_not_finite<T>(system); row >= 0) outcome.row = row;  // x is not finite in every row then
}

// A short system touches a short stack.
template <class T>
void solve_typed(const System& system, Outcome& outcome) {
    constexpr int few = 128;
    if (system.rows <= few) solve_in<T, few>(system, outcome);
    else solve_in<T, small_rows>(system, outcome);
}

template <class T>
bool solve_ends_typed(const System& system, void* scratch) {
    const std::int64_t n = system.rows;
    T *const y = static_cast<T*>(scratch), *const coupling = y + n;
    const Rows<T> rows(system, coupling + n);
    if (!twisted<T>(n, rows.a, rows.b, rows.c, rows.d, y, coupling)) return false;
    store(system, y);
    return true;
}

}  // namespace

std::size_t from_ends_bytes(const System& system) { return 6 * size_of(system.dtype) * static_cast<std::size_t>(system.rows); }

bool solve_from_ends(const System& system, void* scratch, Outcome& outcome) {
    if (!(system.dtype == DType::f32 ? solve_ends_typed<float>(system, scratch) : solve_ends_typed<double>(system, scratch))) return false;
    outcome = Outcome{};
    outcome.device = "cpu";
    outcome.reason = Reason::exact, outcome.branch = "twisted";
    return true;
}

void solve_small(const System& system, Outcome& outcome) noexcept {
    outcome = Outcome{};
    outcome.device = "cpu";
    if (system.dtype == DType::f32) solve_typed<float>(system, outcome);
    else solve_typed<double>(system, outcome);
}

}  // namespace trifold::cpu
