// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace trifold::cuda {

/// The largest of some numbers' magnitudes, to 20 bits at least; NaN where one of them is.
template <class T>
struct Largest;

template <>
struct Largest<float> {
    float held = 0;
#ifdef __CUDACC__
    __device__ __forceinline__ void add(float x) { asm("max.NaN.f32 %0, %1, %2;" : "=f"(held) : "f"(held), "f"(fabsf(x))); }
#else  // in a test on the host
    void add(float x) { held = fabsf(x) > held || x != x ? fabsf(x) : held; }
#endif
    __device__ __forceinline__ float value() const { return held; }
};

template <>
struct Largest<double> {  // upper halves, ordered as integers
    unsigned held = 0;
    __device__ __forceinline__ void add(double x) { held = max(held, static_cast<unsigned>(__double2hiint(x)) & 0x7fffffffu); }
    __device__ __forceinline__ double value() const { return __hiloint2double(static_cast<int>(held), 0); }
};

}  // namespace trifold::cuda
