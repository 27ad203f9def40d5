// SPDX-License-Identifier: BSD-3-Clause
// One system of any length, one thread: the last resort for a long system, the first choice for a few hundred rows.
//
// Equation   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i]
// Arrays     any strides; scratch holds n rows of four words
// Writes     x after the last row has been found finite; rhs is read only (in place: until then)
// Work       one thread; latency-bound at 20 to 30 cycles per row
// Traffic    LU: 4 read + 4 written + 4 read + 1 read and written + 1 read + 1 written = 16 words per row
// Numerics   lu: partial pivoting between neighbouring rows (gtsv). thomas: as in small.cpp, with the same bound on
//            |a_i c'_{i-1}|; where it fails, `automatic` turns to lu and `thomas` by name is `unstable` at that row.
// Source     Anderson et al., LAPACK Users' Guide (gtsv); Higham, 2nd ed., section 9.6
#include "backends/cpu/tridiagonal/single.hpp"

#include <cmath>

#include "backends/cpu/tridiagonal/values.hpp"

namespace trifold::cpu {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::System;

template <class T>
struct Rows {
    Values<T> lower, diag, upper, rhs;
    std::int64_t n;

    explicit Rows(const System& system)
        : lower(system.lower), diag(system.diag), upper(system.upper), rhs(system.rhs), n(system.rows) {}
    T below(std::int64_t i) const { return i > 0 ? lower[i] : T(0); }
    T above(std::int64_t i) const { return i + 1 < n ? upper[i] : T(0); }
};

// u[4 i …] = c'_i, d'_i. Returns the first row whose update is too large for its own entries, or -1.
template <class T>
std::int64_t thomas(const Rows<T>& a, T* u) {
    constexpr T growth = 4;
    T c = 0, d = 0;
    for (std::int64_t i = 0; i < a.n; ++i) {
        const T below = a.below(i), diag = a.diag[i], above = a.above(i), update = below * c;
        const T r = T(1) / (diag - update);
        d = (a.rhs[i] - below * d) * r;
        c = above * r;
        u[4 * i] = c, u[4 * i + 1] = d;
        const bool small = std::fabs(update) <= growth * std::fmax(std::fmax(std::fabs(below), std::fabs(above)), std::fabs(diag));
        if (!small || !std::isfinite(r) || r == T(0)) return i;  // 0: an infinite pivot
    }
    for (std::int64_t i = a.n - 2; i >= 0; --i) u[4 * i + 1] -= u[4 * i] * u[4 * i + 5];
    return -1;
}

// u[4 i …] = upper, solution, pivot, second upper. Returns the first row without a pivot, or -1. An infinite pivot leaves NaN
// as its row's solution.
template <class T>
std::int64_t lu(const Rows<T>& a, T* u) {
    const std::int64_t n = a.n;
    T diag = a.diag[0], upper = a.above(0), right = a.rhs[0];
    for (std::int64_t i = 0; i + 1 < n; ++i) {
        const T below = a.lower[i + 1], next_diag = a.diag[i + 1], next_upper = a.above(i + 1), next_right = a.rhs[i + 1];
        T* const row = u + 4 * i;
        if (std::fabs(diag) >= std::fabs(below)) {
            if (diag == T(0)) return i;
            const T m = below / diag;
            row[0] = upper, row[1] = right, row[2] = diag, row[3] = 0;
            diag = next_diag - m * upper;
            right = next_right - m * right;
            upper = next_upper;
        } else {
            const T m = diag / below;
            row[0] = next_diag, row[1] = next_right, row[2] = below, row[3] = next_upper;
            diag = upper - m * next_diag;
            right = right - m * next_right;
            upper = -m * next_upper;
        }
    }
    if (diag == T(0)) return n - 1;
    u[4 * (n - 1) + 1] = right / diag + (diag - diag);
    for (std::int64_t i = n - 2; i >= 0; --i) {
        T* const row = u + 4 * i;
        T value = row[1] - row[0] * row[5];
        if (i + 2 < n) value -= row[3] * row[9];
        row[1] = value / row[2] + (row[2] - row[2]);
    }
    return -1;
}

template <class T>
bool store(const System& system, const T* u, Outcome& outcome) {
    for (std::int64_t i = 0; i < system.rows; ++i)
        if (!std::isfinite(u[4 * i + 1])) {
            const std::int64_t row = first_not_finite<T>(system);
            outcome.reason = Reason::not_finite, outcome.row = row >= 0 ? row : i;
            return false;
        }
    T* const x = static_cast<T*>(system.x.data);
    for (std::int64_t i = 0; i < system.rows; ++i) x[i * system.x.row_stride] = u[4 * i + 1];
    outcome.reason = Reason::exact;
    return true;
}

template <class T>
void solve_typed(const System& system, Algorithm algorithm, void* scratch, Outcome& outcome) {
    const Rows<T> rows(system);
    T* const u = static_cast<T*>(scratch);
    if (algorithm != Algorithm::lu) {
        outcome.branch = "thomas";
        const std::int64_t bad = thomas(rows, u);
        if (bad < 0 && store(system, u, outcome)) return;
        if (algorithm == Algorithm::thomas) {
            const std::int64_t row = first_not_finite<T>(system);
            outcome.reason = row >= 0 ? Reason::not_finite : Reason::unstable;
            if (row >= 0 || bad >= 0) outcome.row = row >= 0 ? row : bad;
            return;
        }
        outcome.tried_other = true;
    }
    outcome.branch = "lu";
    outcome.row = -1;
    const std::int64_t column = lu(rows, u);
    if (column >= 0) outcome.reason = Reason::singular, outcome.row = column;
    else if (store(system, u, outcome) && outcome.tried_other) outcome.rescued = 1;
}

}  // namespace

std::size_t single_bytes(const System& system) { return 4 * size_of(system.dtype) * static_cast<std::size_t>(system.rows); }

void solve_single(const System& system, Algorithm algorithm, const tridiagonal::Launch& launch, Outcome& outcome) {
    outcome = Outcome{};
    outcome.device = "cpu";
    if (system.dtype == DType::f32) solve_typed<float>(system, algorithm, launch.scratch, outcome);
    else solve_typed<double>(system, algorithm, launch.scratch, outcome);
    if (!outcome.ok()) outcome.failures = 1, outcome.system = system.number;
    if (launch.status) launch.status[system.number] = static_cast<std::int8_t>(outcome.reason);
}

}  // namespace trifold::cpu
