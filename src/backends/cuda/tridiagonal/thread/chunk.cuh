// SPDX-License-Identifier: BSD-3-Clause
// A chunk of R rows in one thread's registers.
//
//   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i]
//
// Elimination forwards, then backwards, leaves every row as x[i] = D[i] - A[i] x[before] - C[i] x[last], the last one as
// x[last] = D - A x[before] - C x[after]: x[before] is the unknown before the chunk, x[after] the one after it. The chunk's last
// unknown and the first row are all that neighbours need, so a system of n rows becomes one of n / R (F. A. Wang 1981, "A
// parallel method for tridiagonal equations"; here R is a register count). Nothing is pivoted: who uses the result checks it.
#pragma once

#include <cstdint>

namespace trifold::cuda {

#ifdef __CUDACC__  // a test on the host has its own
/// 1/x to about one unit in the last place for normal x of moderate size; infinities, zeros and subnormal x give no finite number.
__device__ __forceinline__ float reciprocal(float x) {
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return fmaf(r, fmaf(-x, r, 1.0f), r);
}

__device__ __forceinline__ double reciprocal(double x) {
    double r;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
    const double e = fma(-x, r, 1.0);  // 2^-20 or less; the next line leaves its cube
    return fma(r, fma(e, e, e), r);
}

/// 1/pivot and c = upper/pivot, each to a unit in the last place or two; c does not wait for the other.
__device__ __forceinline__ float divide_by(float pivot, float upper, float& c) {
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(pivot));  // good to one unit in the last place
    c = upper * r;
    return r;
}

__device__ __forceinline__ double divide_by(double pivot, double upper, double& c) {
    double r;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(pivot));
    const double e = fma(-pivot, r, 1.0), q = fma(e, e, e), t = upper * r;
    c = fma(t, q, t);
    return fma(r, q, r);
}

/// Quotients by one number, each to a unit in the last place or two: none waits for another, nor for the reciprocal. Roughly: single precision by the hardware's
/// reciprocal alone, good to one unit, for the rows of a chunk; where chunks are joined that cost several units of the residual.
template <class T>
struct Divisor;
template <>
struct Divisor<float> {
    float r, q;
    __device__ __forceinline__ explicit Divisor(float x) {
        asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
        q = fmaf(-x, r, 1.0f);
    }
    __device__ __forceinline__ float inverse() const { return fmaf(r, q, r); }
    __device__ __forceinline__ float roughly_inverse() const { return r; }
    __device__ __forceinline__ float roughly_of(float x) const { return x * r; }
    __device__ __forceinline__ float of(float x) const {
        const float t = x * r;
        return fmaf(t, q, t);
    }
    /// As a division rounds it, but for a few; equal numbers give 1.
    __device__ __forceinline__ float quotient(float x, float divisor) const {
        const float t = of(x);
        return fmaf(fmaf(-t, divisor, x), r, t);
    }
};
template <>
struct Divisor<double> {
    double r, q;
    __device__ __forceinline__ explicit Divisor(double x) {
        asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
        const double e = fma(-x, r, 1.0);
        q = fma(e, e, e);
    }
    __device__ __forceinline__ double inverse() const { return fma(r, q, r); }
    __device__ __forceinline__ double roughly_inverse() const { return inverse(); }
    __device__ __forceinline__ double roughly_of(double x) const { return of(x); }
    __device__ __forceinline__ double of(double x) const {
        const double t = x * r;
        return fma(t, q, t);
    }
    /// As a division rounds it, but for a few; equal numbers give 1.
    __device__ __forceinline__ double quotient(double x, double divisor) const {
        const double t = of(x);
        return fma(fma(-t, divisor, x), r, t);
    }
};
#endif

__device__ __forceinline__ float fused(float x, float y, float z) { return fmaf(x, y, z); }
__device__ __forceinline__ double fused(double x, double y, double z) { return fma(x, y, z); }

/// x, or 0 where it is not finite.
__device__ __forceinline__ float finite_or_zero(float x) { return (__float_as_uint(x) & 0x7f800000u) == 0x7f800000u ? 0.0f : x; }
__device__ __forceinline__ double finite_or_zero(double x) { return (__double2hiint(x) & 0x7ff00000) == 0x7ff00000 ? 0.0 : x; }

/// One row in unknowns far apart: x = d - a x[left] - c x[right].
template <class T>
struct Relation {
    T a, c, d;
};

/// With `next` for the unknown to the right of `row`: next.left is row's own unknown.
template <class T>
__device__ __forceinline__ Relation<T> close(const Relation<T>& row, const Relation<T>& next) {
    const T k = finite_or_zero(reciprocal(fused(-row.c, next.a, T(1))));
    return {row.a * k, -row.c * next.c * k, fused(-row.c, next.d, row.d) * k};
}

template <class T, int R>
struct Chunk {
    T a[R], c[R], d[R];

    /// Row i, in the order 0 … R-1. Returns 1 / pivot.
    __device__ __forceinline__ T eliminate(int i, T lower, T diag, T upper, T rhs) {
        if (i == 0) {
            const T k = reciprocal(diag);
            a[0] = lower * k;
            d[0] = rhs * k;
            c[0] = upper * k;
            return k;
        } else {
            const T k = reciprocal(fused(-lower, c[i - 1], diag));
            d[i] = fused(-lower, d[i - 1], rhs) * k;
            a[i] = -(lower * k) * a[i - 1];
            c[i] = upper * k;
            return k;
        }
    }

    /// The same for who has found the pivot.
    __device__ __forceinline__ void eliminate_by(int i, T lower, T upper, T rhs, const Divisor<T>& pivot, T k) {
        d[i] = i == 0 ? rhs * k : fused(-lower, d[i ? i - 1 : 0], rhs) * k;
        a[i] = pivot.roughly_of(i == 0 ? lower : -lower * a[i ? i - 1 : 0]);
        c[i] = upper * k;
    }

    /// The same with shorter divisions, for who checks the result and proves nothing. The pivot is made of the very c that is kept:
    /// what rounding does to c then is a change of `upper` alone, and where rows sum to nearly zero (-1, 2, -1) they still do.
    __device__ __forceinline__ T eliminate_to_check(int i, T lower, T diag, T upper, T rhs) {
        const T k = divide_by(i == 0 ? diag : fused(-lower, c[i - 1], diag), upper, c[i]);
        d[i] = i == 0 ? rhs * k : fused(-lower, d[i - 1], rhs) * k;
        a[i] = i == 0 ? lower * k : -(lower * k) * a[i - 1];
        return k;
    }

    /// The same for rows whose diagonal is 1 and whose pivots may be anything.
    __device__ __forceinline__ void eliminate(int i, const Relation<T>& row) {
        if (i == 0) {
            a[0] = row.a, c[0] = row.c, d[0] = row.d;
        } else {
            const T k = finite_or_zero(reciprocal(fused(-row.a, c[i - 1], T(1))));
            d[i] = fused(-row.a, d[i - 1], row.d) * k;
            a[i] = -(row.a * k) * a[i - 1];
            c[i] = row.c * k;
        }
    }

    __device__ __forceinline__ void reduce() {
#pragma unroll
        for (int i = R - 3; i >= 0; --i) {
            d[i] = fused(-c[i], d[i + 1], d[i]);
            a[i] = fused(-c[i], a[i + 1], a[i]);
            c[i] = -c[i] * c[i + 1];
        }
    }

    __device__ __forceinline__ Relation<T> first() const { return {a[0], c[0], d[0]}; }
    __device__ __forceinline__ Relation<T> last() const { return {a[R - 1], c[R - 1], d[R - 1]}; }

    __device__ __forceinline__ T x(int i, T before, T last) const {
        return i == R - 1 ? last : fused(-c[i], last, fused(-a[i], before, d[i]));
    }
};

}  // namespace trifold::cuda
