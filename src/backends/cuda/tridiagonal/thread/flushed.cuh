// SPDX-License-Identifier: BSD-3-Clause
// A pivot whose reciprocal is flushed to 0, or that is infinite in single precision, leaves a row of zeros, which looks like a solution; in double precision an infinite one leaves no number.
#pragma once

namespace trifold::cuda {

/// Whether one of some reciprocals is 0. A minimum that nothing else waits for: a comparison would be a branch, or another register.
template <class T>
struct Flushed;

template <>
struct Flushed<float> {
    float least = 1;
    __device__ __forceinline__ void add(float reciprocal) { least = fminf(least, fabsf(reciprocal)); }
    __device__ __forceinline__ bool any() const { return !(least > 0); }
};

template <>
struct Flushed<double> {  // by upper halves without their sign; no reciprocal is subnormal
    unsigned least = ~0u;
    __device__ __forceinline__ void add(double reciprocal) { least = min(least, static_cast<unsigned>(__double2hiint(reciprocal)) << 1); }
    __device__ __forceinline__ bool any() const { return least == 0; }
};

}  // namespace trifold::cuda
