// SPDX-License-Identifier: BSD-3-Clause
// What ragged_tile.cuh asks of a GPU, on the host: blocks of threads that run one after the other between barriers, votes and shuffles; divisions as a GPU rounds them, about; and LAPACK's order of elimination.
#pragma once

#include "cuda_warps_on_host.hpp"

inline void __syncthreads() { trifold::cuda::block_barrier(); }

inline int __syncthreads_count(bool vote) {
    static int votes = 0;
    __syncthreads();
    votes = 0;
    __syncthreads();
    votes += vote;
    __syncthreads();
    const int all = votes;
    __syncthreads();
    return all;
}
inline bool __syncthreads_or(bool vote) { return __syncthreads_count(vote) > 0; }

inline void atomicMin(int* at, int value) { *at = std::min(*at, value); }

#include "backends/cuda/runtime/outcome.hpp"
#include "backends/cuda/tridiagonal/operand.cuh"
#include "backends/cuda/tridiagonal/pivoted_verdict.cuh"

namespace trifold::cuda {

template <class T>
struct Relation {
    T a, c, d;
};
template <class T>
T fused(T x, T y, T z) { return std::fma(x, y, z); }

inline void report_failure(DeviceOutcome* outcome, std::int8_t* status, std::int64_t system, std::int64_t row, Reason reason) {
    outcome->first = std::min(outcome->first, failure_key(system, outcome->rows, row, reason));
    ++outcome->failures;
    if (status) status[system] = static_cast<std::int8_t>(reason);
}
inline void report_rescued(DeviceOutcome* outcome, unsigned count) { outcome->rescued += count; }

/// As pivoted_line.cuh has it.
template <class T>
PivotedVerdict<T> solve_line(const Line<T>& lower, const Line<T>& diag, const Line<T>& upper, const Line<T>& rhs, const Line<T>& x, std::int64_t n, T* scratch, std::int64_t) {
    T *const pivot = scratch, *const above = pivot + n, *const above2 = above + n, *const value = above2 + n;
    for (std::int64_t i = 0; i < n; ++i)
        if (!all_finite(i ? lower[i] : T(0), diag[i], i + 1 < n ? upper[i] : T(0), rhs[i])) return {Reason::not_finite, i};
    T d = diag[0], u = n > 1 ? upper[0] : T(0), y = rhs[0];
    for (std::int64_t i = 0; i + 1 < n; ++i) {
        const T a = lower[i + 1], b = diag[i + 1], c = i + 2 < n ? upper[i + 1] : T(0), f = rhs[i + 1];
        const bool exchange = abs(a) > abs(d);
        const T p = exchange ? a : d, m = (exchange ? d : a) / p;
        if (p == T(0)) return {Reason::singular, i};
        pivot[i] = p, above[i] = exchange ? b : u, above2[i] = exchange ? c : T(0), value[i] = exchange ? f : y;
        const T next_d = exchange ? u - m * b : b - m * u, next_u = exchange ? -m * c : c, next_y = exchange ? y - m * f : f - m * y;
        d = next_d, u = next_u, y = next_y;
    }
    if (d == T(0)) return {Reason::singular, n - 1};
    value[n - 1] = y / d;
    for (std::int64_t i = n - 2; i >= 0; --i) value[i] = (value[i] - above[i] * value[i + 1] - (i + 2 < n ? above2[i] * value[i + 2] : T(0))) / pivot[i];
    for (std::int64_t i = 0; i < n; ++i) x.at(i) = value[i];
    return {Reason::exact, -1};
}

}  // namespace trifold::cuda

#include "backends/cuda/tridiagonal/general/ragged_tile.cuh"
