// SPDX-License-Identifier: BSD-3-Clause
// Dominant rows eliminated one after the other, without a subtraction: by what each has on its diagonal beyond its other two entries, its excess.
//
//   |pivot| = excess + |lower| (1 - |g of the row before|) + |upper|,   g = upper / pivot,   1 - |g| = (|pivot| - |upper|) / |pivot|
//
// where lower g and the diagonal have the same sign, else with 1 + |g|. So no pivot is smaller than its row's other entry, however near to singular the matrix is and however many rows it has, and what
//   is left for those who join chunks (march_factor.cuh, march_join.cuh) is dominant too: its excess is what is left of these numbers, not of sums of their own, since a row must have the diagonal that x
//   will be put into, to a roundoff of the row that it was.
// Source: W. K. Grassmann, M. I. Taksar, D. P. Heyman 1985 (Markov chains); for dominant matrices J. Demmel, P. Koev 2004.
#pragma once

#ifdef __CUDACC__  // a test on the host has a Divisor of its own
#include "backends/cuda/tridiagonal/thread/chunk.cuh"
#endif

namespace trifold::cuda {

/// diag: excess + |lower| + |upper|, negative where `below` is true.
template <class T>
struct DominantRow {
    T lower, upper, excess;
    bool below;
};

/// What is left of rows that are eliminated down to their last one: its row in it and in the last unknown before them, and what their first unknown is,
/// x[first] = … - fill x[before] + weight x[last].
template <class T>
struct DominantLink {
    T lower, upper;      ///< upper: of x[first] of the rows behind
    T excess;            ///< as if the rows behind took nothing
    T fill, weight;
    bool below;
    bool fits;           ///< false where the rows were not dominant or their numbers too large

    /// The last row, in last unknowns only.
    __device__ __forceinline__ DominantRow<T> with(const DominantLink& behind) const {
        const bool agree = (signbit(upper) != signbit(behind.fill)) == below;
        const T beside = agree ? T(1) - fabs(behind.fill) : T(1) + fabs(behind.fill);
        return {lower, upper * behind.weight, fused(fabs(upper), fmax(beside - fabs(behind.weight), T(0)), excess), below};
    }
};

template <class T>
struct DominantRows {
    T g = 0, spike = -1, weight = 1, fill = 0;  ///< x[i] = y[i] - spike x[before] - g x[i+1]
    T beside = 1;                               ///< 1 - |g|

    /// inverse: 1 / pivot, l: lower / pivot.
    __device__ __forceinline__ void eliminate(const DominantRow<T>& row, T& inverse, T& l) {
        const T lower = fabs(row.lower);
        const T more = fused(lower, left_beside(row), row.excess), pivot = more + fabs(row.upper);
        const Divisor<T> by(row.below ? -pivot : pivot);
        inverse = by.inverse(), l = row.lower * inverse;
        beside = fabs(by.of(more)), g = by.of(row.upper);
        spike = -l * spike, fill = fused(weight, spike, fill), weight = -g * weight;
    }
    __device__ __forceinline__ DominantLink<T> end(const DominantRow<T>& last, bool fits) const {
        return {-last.lower * spike, last.upper, fused(fabs(last.lower), fmax(left_beside(last) - fabs(spike), T(0)), last.excess), fill, weight, last.below, fits};
    }

private:
    /// Of |lower|: what it leaves on the diagonal beyond the row's excess and |upper|.
    __device__ __forceinline__ T left_beside(const DominantRow<T>& row) const {
        return (signbit(row.lower) != signbit(g)) == row.below ? beside : T(2) - beside;  // 1 + |g|
    }
};

}  // namespace trifold::cuda
