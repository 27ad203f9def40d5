// SPDX-License-Identifier: BSD-3-Clause
// Largest as bits in the order of the numbers, NaN above all: what whole warps take the largest of in one instruction.
#pragma once

#include "backends/cuda/tridiagonal/thread/largest.cuh"

namespace trifold::cuda {

__device__ __forceinline__ unsigned held_bits(const Largest<float>& x) { return __float_as_uint(x.held); }
__device__ __forceinline__ unsigned held_bits(const Largest<double>& x) { return x.held; }

template <class T>
__device__ __forceinline__ T number_of(unsigned bits) {
    if constexpr (sizeof(T) == 8) return __hiloint2double(static_cast<int>(bits), 0);
    else return __uint_as_float(bits);
}

/// Largest<double> cuts.
template <class T>
inline constexpr T beyond_cut = sizeof(T) == 8 ? T(1 + 0x1p-19) : T(1);

}  // namespace trifold::cuda
