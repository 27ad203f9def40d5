// SPDX-License-Identifier: BSD-3-Clause
// One small system: latency is all that counts.
//
// Equation   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],  i = 0 … n-1,  n ≤ 256
// Arrays     any strides; c', d' and LU's copies on the stack (≤ 10 KiB)
// Writes     x, once the elimination is known to be good; nothing otherwise
// Work       one thread; the chain is a product, a difference, a division and a product per row (about 25 cycles)
// Numerics   Thomas: L U = A with |L||U| ≤ |A| + |a_i c'_{i-1}| on the diagonal. The sweep is taken when
//            |a_i c'_{i-1}| ≤ 4 max(|a_i|, |b_i|, |c_i|) for every row, which bounds the backward error by about 9 u
//            (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 9.6). Otherwise gtsv's partial pivoting.
// Source     Thomas 1949; Anderson et al., LAPACK Users' Guide (gtsv)
#include "backends/cpu/tridiagonal/small.hpp"

#include <cmath>

#include "backends/cpu/tridiagonal/values.hpp"

namespace trifold::cpu {
namespace {

using tridiagonal::System;

template <class T>
bool thomas(std::int64_t n, const Values<T>& a, const Values<T>& b, const Values<T>& c, const Values<T>& d, T* x, std::int64_t stride) {
    constexpr T growth = 4;
    T cp[small_rows], dp[small_rows];
    T r = T(1) / b[0];
    T c_last = n > 1 ? c[0] * r : T(0), d_last = d[0] * r;
    cp[0] = c_last, dp[0] = d_last;
    bool safe = std::isfinite(r) && r != T(0);
    for (std::int64_t i = 1; i < n; ++i) {
        const T ai = a[i], bi = b[i], ci = i + 1 < n ? c[i] : T(0);
        const T update = ai * c_last;
        r = T(1) / (bi - update);
        d_last = (d[i] - ai * d_last) * r;
        c_last = ci * r;
        cp[i] = c_last, dp[i] = d_last;
        safe &= r != T(0);  // an infinite pivot
        safe &= std::fabs(update) <= growth * std::fmax(std::fmax(std::fabs(ai), std::fabs(ci)), std::fabs(bi));
    }
    // A pivot of zero made c' or d' infinite or NaN on the way; both reach d' of the last row or the bound above.
    T sum = 0;
    T y = d_last;
    if (!safe || !std::isfinite(d_last)) return false;
    for (std::int64_t i = n - 2; i >= 0; --i) {
        y = dp[i] - cp[i] * y;
        dp[i] = y;
        sum += std::fabs(y);
    }
    if (!std::isfinite(sum)) return false;
    for (std::int64_t i = 0; i < n; ++i) x[i * stride] = dp[i];
    return true;
}

template <class T>
void lu(std::int64_t n, const Values<T>& a, const Values<T>& b, const Values<T>& c, const Values<T>& d, T* x, std::int64_t stride,
        Outcome& outcome) {
    T u0[small_rows], u1[small_rows], u2[small_rows], y[small_rows];
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
    for (std::int64_t i = 0; i < n; ++i) x[i * stride] = y[i];
    outcome.reason = Reason::exact;
}

template <class T>
void solve_typed(const System& system, Outcome& outcome) {
    const Values<T> a(system.lower), b(system.diag), c(system.upper), d(system.rhs);
    T* x = static_cast<T*>(system.x.data);
    const std::int64_t stride = system.x.row_stride;
    if (thomas<T>(system.rows, a, b, c, d, x, stride)) {
        outcome.reason = Reason::exact;
        outcome.branch = "thomas";
        return;
    }
    outcome.branch = "lu";
    outcome.tried_other = true;
    lu<T>(system.rows, a, b, c, d, x, stride, outcome);
    if (outcome.ok()) {
        outcome.rescued = 1;
        return;
    }
    outcome.failures = 1, outcome.system = system.number;
    if (outcome.reason != Reason::not_finite) return;
    if (const std::int64_t row = first_not_finite<T>(system); row >= 0) outcome.row = row;  // x is not finite in every row then
}

}  // namespace

void solve_small(const System& system, Outcome& outcome) noexcept {
    outcome = Outcome{};
    outcome.device = "cpu";
    if (system.dtype == DType::f32) solve_typed<float>(system, outcome);
    else solve_typed<double>(system, outcome);
}

}  // namespace trifold::cpu
