// SPDX-License-Identifier: BSD-3-Clause
// A right-hand side of a thread's R consecutive rows, in registers, through the segment's part of the matrix, which lies in shared memory: inverse, lower, upper, fill, R numbers each (segment.cuh).
#pragma once

#include "backends/cuda/tridiagonal/shared/place.cuh"
#include "backends/cuda/tridiagonal/shared/segment.cuh"

namespace trifold::cuda {

/// y[i] = inverse[i] d[i] - lower[i] y[i-1], d in y.
template <class T, int R>
__device__ __forceinline__ void eliminate_rows(const T* own, T (&y)[R]) {
    using Vector = typename SharedVector<T>::type;
    constexpr int V = 16 / static_cast<int>(sizeof(T));
#pragma unroll
    for (int i = 0; i < R; i += V) {
        const Vector inverse = reinterpret_cast<const Vector*>(own)[i / V], lower = reinterpret_cast<const Vector*>(own + R)[i / V];
#pragma unroll
        for (int v = 0; v < V; ++v)
            y[i + v] = i + v ? fused(-entry(lower, v), y[i + v ? i + v - 1 : 0], y[i + v] * entry(inverse, v)) : y[0] * entry(inverse, 0);
    }
}

/// z[0] of z[i] = y[i] - upper[i] z[i+1], z[R-1] = 0.
template <class T, int R>
__device__ __forceinline__ T first_of_rows(const T* own, const T (&y)[R]) {
    using Vector = typename SharedVector<T>::type;
    constexpr int V = 16 / static_cast<int>(sizeof(T));
    T z = 0;
#pragma unroll
    for (int i = R - V; i >= 0; i -= V) {
        const Vector upper = reinterpret_cast<const Vector*>(own + 2 * R)[i / V];
#pragma unroll
        for (int v = V - 1; v >= 0; --v)
            if (i + v < R - 1) z = fused(-entry(upper, v), z, y[i + v]);
    }
    return z;
}

/// x[i] = y[i] - fill[i] before - upper[i] x[i+1], in place; y[R-1] is x[R-1] already.
template <class T, int R>
__device__ __forceinline__ void substitute_rows(const T* own, T before, T (&y)[R]) {
    using Vector = typename SharedVector<T>::type;
    constexpr int V = 16 / static_cast<int>(sizeof(T));
#pragma unroll
    for (int i = R - V; i >= 0; i -= V) {
        const Vector upper = reinterpret_cast<const Vector*>(own + 2 * R)[i / V], fill = reinterpret_cast<const Vector*>(own + 3 * R)[i / V];
#pragma unroll
        for (int v = V - 1; v >= 0; --v)
            if (i + v < R - 1) y[i + v] = fused(-entry(upper, v), y[i + v + 1], fused(-entry(fill, v), before, y[i + v]));
    }
}

}  // namespace trifold::cuda
