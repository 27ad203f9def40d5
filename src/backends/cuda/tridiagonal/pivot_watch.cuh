// SPDX-License-Identifier: BSD-3-Clause
// PivotRange, without a branch: how far from 1 pivots have been.
#pragma once

#include "backends/cuda/tridiagonal/pivot_range.cuh"

namespace trifold::cuda {

template <class T>
struct PivotWatch {
    static constexpr int wide = PivotRange<T>::wide, least = Magnitude<T>::one - wide;
    unsigned farthest = 0;

    __device__ __forceinline__ void see(T pivot) { farthest = max(farthest, static_cast<unsigned>(magnitude(pivot) - least)); }
    __device__ __forceinline__ Divisor<T> divisor(T pivot) {
        see(pivot);
        return Divisor<T>(pivot);
    }
    __device__ __forceinline__ T inverse(T pivot) {
        see(pivot);
        return reciprocal(pivot);
    }
    __device__ __forceinline__ bool good() const { return farthest <= 2u * wide; }
};

}  // namespace trifold::cuda
