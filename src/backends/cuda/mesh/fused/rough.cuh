// SPDX-License-Identifier: BSD-3-Clause
// Doubles in the functions of the point that are evaluated in every step although they give the same: divided to two units in the last place without a branch.
//
// A division rounded correctly looks whether it must take a slow way, which is a call: no load or other division passes it. Here a reciprocal is good to 20 bits, one cubic step makes 53 of it, and a product the quotient.
// Numerics: 2 ulp where neither the divisor nor its reciprocal is subnormal. By zero, infinity, NaN and what is subnormal or has a subnormal reciprocal: NaN, which reaches the end of its line and is reported: never a wrong number.
//   Floats need none of this: these programs are compiled with a division of two ulp (jit/compiler.hpp).
#pragma once

#ifdef __CUDACC__

// As a function of the compiler's, which sees that two of the same are one; assembly it would repeat.
extern "C" __device__ double __nvvm_rcp_approx_ftz_d(double);

namespace trifold::cuda::fused {

__device__ __forceinline__ float reciprocal(float x) {
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}
__device__ __forceinline__ double reciprocal(double x) {
    double r = ::__nvvm_rcp_approx_ftz_d(x);
    const int high = __double2hiint(r);
    r = __hiloint2double((high & 0x7fffffff) == 0 ? 0x7ff80000 : high, 0);  // the low half of such a reciprocal is zero
    double e = fma(-x, r, 1.0);
    e = fma(e, e, e);
    return fma(r, e, r);
}

/// As a double in a function's text, but for its division.
struct Rough {
    double value = 0;

    Rough() = default;
    template <class Number>
    __device__ __forceinline__ Rough(Number number) : value(static_cast<double>(number)) {}

    friend __device__ __forceinline__ Rough operator+(Rough a, Rough b) { return a.value + b.value; }
    friend __device__ __forceinline__ Rough operator-(Rough a, Rough b) { return a.value - b.value; }
    friend __device__ __forceinline__ Rough operator*(Rough a, Rough b) { return a.value * b.value; }
    friend __device__ __forceinline__ Rough operator/(Rough a, Rough b) { return a.value * reciprocal(b.value); }
    friend __device__ __forceinline__ Rough operator-(Rough a) { return -a.value; }
    friend __device__ __forceinline__ Rough operator+(Rough a) { return a; }
    friend __device__ __forceinline__ bool operator<(Rough a, Rough b) { return a.value < b.value; }
    friend __device__ __forceinline__ bool operator>(Rough a, Rough b) { return a.value > b.value; }
    friend __device__ __forceinline__ bool operator<=(Rough a, Rough b) { return a.value <= b.value; }
    friend __device__ __forceinline__ bool operator>=(Rough a, Rough b) { return a.value >= b.value; }
    friend __device__ __forceinline__ bool operator==(Rough a, Rough b) { return a.value == b.value; }
    friend __device__ __forceinline__ bool operator!=(Rough a, Rough b) { return a.value != b.value; }
    __device__ __forceinline__ Rough& operator+=(Rough b) { return *this = *this + b; }
    __device__ __forceinline__ Rough& operator-=(Rough b) { return *this = *this - b; }
    __device__ __forceinline__ Rough& operator*=(Rough b) { return *this = *this * b; }
    __device__ __forceinline__ Rough& operator/=(Rough b) { return *this = *this / b; }
    friend __device__ __forceinline__ Rough trifold_mad(Rough a, Rough b, Rough c) { return ::fma(a.value, b.value, c.value); }
    friend __device__ __forceinline__ Rough fabs(Rough a) { return ::fabs(a.value); }
    friend __device__ __forceinline__ Rough sqrt(Rough a) { return ::sqrt(a.value); }
    friend __device__ __forceinline__ Rough exp(Rough a) { return ::exp(a.value); }
    friend __device__ __forceinline__ Rough fmin(Rough a, Rough b) { return ::fmin(a.value, b.value); }
    friend __device__ __forceinline__ Rough fmax(Rough a, Rough b) { return ::fmax(a.value, b.value); }
};

/// What a function reads, and parameters, as such.
template <class Near>
struct RoughNear {
    const Near& near;

    template <int f, int dx, int dy, int dz>
    __device__ __forceinline__ Rough at() const {
        return near.template at<f, dx, dy, dz>();
    }
};
template <class Parameters>
struct RoughNumbers {
    const Parameters& numbers;

    __device__ __forceinline__ Rough operator[](int k) const { return numbers[k]; }
};

}  // namespace trifold::cuda::fused

#endif
