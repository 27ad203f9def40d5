// SPDX-License-Identifier: BSD-3-Clause
// The row that elimination with row exchanges carries along.
//
// It may wait for its pivot through thousands of rows. Where these are equal, as those of convection or of waves are, so are the roundings that each leaves in it, and they add up: a tenth of a roundoff a row.
// So it is kept in twice the precision.
// Source: T. J. Dekker 1971, A floating-point technique for extending the available precision (sums and products without error).
#pragma once

#include "backends/cuda/tridiagonal/pivot_watch.cuh"

namespace trifold::cuda {

template <class T>
struct PivotedRow {
    T near, diag, far, rhs;  ///< near: of the unknown that goes first
};

// Rounded as they stand: no compiler makes one operation of two.
__device__ __forceinline__ double rounded_product(double x, double y) { return __dmul_rn(x, y); }
__device__ __forceinline__ float rounded_product(float x, float y) { return __fmul_rn(x, y); }
__device__ __forceinline__ double rounded_sum(double x, double y) { return __dadd_rn(x, y); }
__device__ __forceinline__ float rounded_sum(float x, float y) { return __fadd_rn(x, y); }

/// high + low + fresh: what the last operation has lost is fresh, so that nothing waits for it.
template <class T>
struct Twice {
    T high = 0, low = 0, fresh = 0;

    __device__ __forceinline__ T lost() const { return low + fresh; }

    /// this - (factor + lost) · q.
    __device__ __forceinline__ Twice less(T factor, T factor_lost, T q) const {
        const T product = -rounded_product(factor, q), of_product = fused(-factor, q, -product);
        const T sum = rounded_sum(high, product), share = rounded_sum(sum, -high);
        const T of_sum = rounded_sum(rounded_sum(high, -rounded_sum(sum, -share)), rounded_sum(product, -share));
        return {sum, fused(-factor_lost, q, lost()), of_sum + of_product};
    }
};

template <class T>
struct Carried {
    Twice<T> diag{T(1)}, far{}, rhs{};

    /// With the next row. Leaves the row of U: x = value - first x[+1] - second x[+2]. Eliminated is what is left, not a multiple of what was there: what a quotient has lost, the row of U has, and no other.
    __device__ __forceinline__ void eliminate(const PivotedRow<T>& row, PivotWatch<T>& watch, T& first, T& second, T& value) {
        const bool exchange = abs(row.near) > abs(diag.high);
        // What it has lost before the last row: that one's share is a rounding like any other.
        const Divisor<T> pivot = watch.divisor(exchange ? row.near : diag.high + diag.low);
        const T left = exchange ? diag.high : row.near, left_lost = exchange ? diag.lost() : T(0);
        first = pivot.of(exchange ? row.diag : far.high + far.low), second = exchange ? pivot.quotient(row.far, row.near) : T(0), value = pivot.of(exchange ? row.rhs : rhs.high + rhs.low);
        const auto waits = [&](const Twice<T>& own, T other) { return Twice<T>{exchange ? own.high : other, exchange ? own.low : T(0), exchange ? own.fresh : T(0)}; };
        diag = waits(far, row.diag).less(left, left_lost, first);
        rhs = waits(rhs, row.rhs).less(left, left_lost, value);
        const T product = -rounded_product(left, second);
        far = {exchange ? product : row.far, exchange ? fused(-left_lost, second, fused(-left, second, -product)) : T(0), T(0)};
    }

    /// To what is stored of it, so that both times are alike.
    __device__ __forceinline__ void round() {
        for (Twice<T>* part : {&diag, &far, &rhs}) *part = {part->high + part->lost()};
    }
};

}  // namespace trifold::cuda
