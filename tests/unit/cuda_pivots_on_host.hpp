// SPDX-License-Identifier: BSD-3-Clause
// What headers for pivoting on a GPU take from the compiler and from thread/chunk.cuh, on the host. Before these headers.
#pragma once

#define __device__
#define __forceinline__ inline
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
using std::abs, std::fabs, std::fma, std::max, std::min;

inline int __double2hiint(double x) { return static_cast<int>(std::bit_cast<std::int64_t>(x) >> 32); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
// Not inlined where a compiler might fuse what stands beside them.
[[gnu::noinline]] inline double __dmul_rn(double a, double b) { return a * b; }
[[gnu::noinline]] inline double __dadd_rn(double a, double b) { return a + b; }
[[gnu::noinline]] inline double __dsub_rn(double a, double b) { return a - b; }
[[gnu::noinline]] inline float __fmul_rn(float a, float b) { return a * b; }
[[gnu::noinline]] inline float __fadd_rn(float a, float b) { return a + b; }

namespace trifold::cuda {

template <class T>
T fused(T a, T b, T c) {
    return std::fma(a, b, c);
}
template <class T>
T reciprocal(T x) {
    return 1 / x;
}
template <class T>
struct Divisor {
    T by;
    explicit Divisor(T x) : by(x) {}
    T of(T x) const { return x / by; }
    T quotient(T x, T y) const { return x / y; }
};

}  // namespace trifold::cuda
