// SPDX-License-Identifier: BSD-3-Clause
// Segments of lines in registers, and small helpers of the streaming kernels.
//
// Of a right-hand side d there remains, with the table of line_table.hpp:
//   y[i] = inverse[i] d[i] - lower[i] y[i-1]                     forwards
//   z[i] = y[i] - upper[i] z[i+1], z[R-1] = 0                   backwards; only z[0] is wanted
//   gamma[s] = inverse (y[R-1] - coupling z[0] of s+1) - lower gamma[s-1],  x[last of s] = gamma[s] - upper x[last of s+1]    the join
//   x[i] = y[i] - fill[i] x[before] - upper[i] x[i+1]            backwards
// A ring is the line that it is opened to (mesh/rings.hpp), of whose solution its last rows lose q s, s = Σ (first z[0] + last x[last of s]): `closing` has first, last and q by segment. s is
// x[before] of the first segment.
#pragma once

#include <cstdint>

namespace trifold::cuda::streaming {

template <class T>
struct Vector16;
template <>
struct Vector16<float> {
    using type = float4;
};
template <>
struct Vector16<double> {
    using type = double2;
};

__device__ __forceinline__ float part(const float& v, int) { return v; }
__device__ __forceinline__ double part(const double& v, int) { return v; }
__device__ __forceinline__ float part(const float2& v, int i) { return i == 0 ? v.x : v.y; }
__device__ __forceinline__ float part(const float4& v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }
__device__ __forceinline__ double part(const double2& v, int i) { return i == 0 ? v.x : v.y; }
__device__ __forceinline__ float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
__device__ __forceinline__ double multiply_add(double a, double b, double c) { return fma(a, b, c); }

template <class T>
inline constexpr int vector_values = 16 / static_cast<int>(sizeof(T));

/// Of factors of R rows: vectors, or where there is half a one too many, halves; of odd rows, single ones.
template <class T, int values>
struct FactorVector {
    using type = typename Vector16<T>::type;
};
template <>
struct FactorVector<float, 2> {
    using type = float2;
};
template <class T>
struct FactorVector<T, 1> {
    using type = T;
};
template <class T, int R>
inline constexpr int factors_at_once = R % vector_values<T> == 0 ? vector_values<T> : R % 2 == 0 ? 2 : 1;

/// So many values or a few more, for what follows to be aligned to 16 bytes.
template <class T>
constexpr int aligned(int count) {
    return (count + vector_values<T> - 1) / vector_values<T> * vector_values<T>;
}

/// Distance of segments in shared memory: factors of R rows (and how they reach the first one), kept apart by banks.
template <class T, int R, bool by_reach = false>
inline constexpr int segment_pitch = (by_reach ? 5 : 4) * R + vector_values<T>;

/// y in place of d; returns z[0], by recurrence or, as rows.cuh has it where it eliminates ahead, as a sum. `factors` in shared memory, aligned as their vectors.
template <class T, int R, bool by_reach = false>
__device__ __forceinline__ T forwards(const T* factors, T (&y)[R], bool joined) {
    constexpr int V = factors_at_once<T, R>;
    static_assert(R % V == 0);
    using Vector = typename FactorVector<T, V>::type;
#pragma unroll
    for (int i = 0; i < R; i += V) {
        const Vector inverse = reinterpret_cast<const Vector*>(factors)[i / V], lower = reinterpret_cast<const Vector*>(factors + R)[i / V];
#pragma unroll
        for (int v = 0; v < V; ++v) y[i + v] = i + v ? multiply_add(-part(lower, v), y[i + v ? i + v - 1 : 0], y[i + v] * part(inverse, v)) : y[0] * part(inverse, 0);
    }
    T z = 0;
    if (by_reach) {
        if (joined)
#pragma unroll
            for (int i = 0; i < R; i += V) {
                const Vector reach = reinterpret_cast<const Vector*>(factors + 4 * R)[i / V];
#pragma unroll
                for (int v = 0; v < V; ++v)
                    if (i + v < R - 1) z = i + v ? multiply_add(part(reach, v), y[i + v], z) : part(reach, v) * y[0];
            }
    } else if (joined)
#pragma unroll
        for (int i = R - V; i >= 0; i -= V) {
            const Vector upper = reinterpret_cast<const Vector*>(factors + 2 * R)[i / V];
#pragma unroll
            for (int v = V - 1; v >= 0; --v)
                if (i + v < R - 1) z = multiply_add(-part(upper, v), z, y[i + v]);
        }
    return z;
}

template <class T, int R>
__device__ __forceinline__ void backwards(const T* factors, T (&y)[R], T before, T last) {
    constexpr int V = factors_at_once<T, R>;
    using Vector = typename FactorVector<T, V>::type;
    y[R - 1] = last;
#pragma unroll
    for (int i = R - V; i >= 0; i -= V) {
        const Vector upper = reinterpret_cast<const Vector*>(factors + 2 * R)[i / V], fill = reinterpret_cast<const Vector*>(factors + 3 * R)[i / V];
#pragma unroll
        for (int v = V - 1; v >= 0; --v)
            if (i + v < R - 1) y[i + v] = multiply_add(-part(upper, v), y[i + v + 1], multiply_add(-part(fill, v), before, y[i + v]));
    }
}

/// Words of a segment's closing in a table, the last one of them unused.
inline constexpr int closing_words = 4;

/// One line of S segments: last(k) is segment k's last row, first what the first segment's first row keeps. Returns s.
template <int S, int at_once, class T, class Last>
__device__ __forceinline__ T close_ring(const T* closing, T first, const Last& last) {
    const T s = multiply_add(closing[0], first, multiply_add(closing[1], last(0), closing[closing_words * (S - 1) + 1] * last(S - 1)));
#pragma unroll at_once
    for (int k = 0; k < S; ++k) last(k) = multiply_add(-closing[closing_words * k + 2], s, last(k));
    return s;
}

/// One thread: last[s apart] and first[s apart] of S segments; last becomes x. `first` has a zero behind the last segment's.
template <class T, int S>
__device__ __forceinline__ void join(const T* joins, T* last, const T* first, int apart) {
    constexpr int most = 32 / static_cast<int>(sizeof(T)), at_once = S < most ? S : most;
    using Vector = typename Vector16<T>::type;
    T gamma = 0, next = 0;
#pragma unroll 1
    for (int s = 0; s < S; s += at_once) {
        T end[at_once], begin[at_once];
#pragma unroll
        for (int k = 0; k < at_once; ++k)
            if (s + k < S) end[k] = last[(s + k) * apart], begin[k] = first[(s + k + 1) * apart];
#pragma unroll
        for (int k = 0; k < at_once; ++k)
            if (s + k < S) {
                const T* const j = joins + 4 * (s + k);
                gamma = multiply_add(-j[1], gamma, multiply_add(-j[0], begin[k], end[k]) * j[2]);
                last[(s + k) * apart] = gamma;
            }
    }
#pragma unroll 1
    for (int s = S - 1; s >= 0; s -= at_once) {
        T end[at_once];
#pragma unroll
        for (int k = 0; k < at_once; ++k)
            if (s >= k) end[k] = last[(s - k) * apart];
#pragma unroll
        for (int k = 0; k < at_once; ++k)
            if (s >= k) {
                next = multiply_add(-joins[4 * (s - k) + 3], next, end[k]);
                last[(s - k) * apart] = next;
            }
    }
}

template <class T>
__device__ __forceinline__ bool finite(T a, T b) {
    return a * T(0) + b * T(0) == T(0);
}

/// The same of one line in registers: last(s) is segment s's last row, which becomes x, next_first(s) what the first row of the segment behind it keeps, 0 behind the last. Whether all are finite.
template <int S, class T, class Last, class NextFirst>
__device__ __forceinline__ bool join_in_registers(const T* joins, const Last& last, const NextFirst& next_first) {
    T gamma = 0, next = 0;
#pragma unroll
    for (int s = 0; s < S; ++s) {
        const T* const j = joins + 4 * s;
        last(s) = gamma = multiply_add(-j[1], gamma, multiply_add(-j[0], next_first(s), last(s)) * j[2]);
    }
    bool good = true;
#pragma unroll
    for (int s = S - 1; s >= 0; --s) {
        last(s) = next = multiply_add(-joins[4 * s + 3], next, last(s));
        good = good && finite(next, T(0));
    }
    return good;
}

__device__ __forceinline__ unsigned shared_address(const void* at) { return static_cast<unsigned>(__cvta_generic_to_shared(at)); }

/// What this thread wrote to shared memory comes before what copies of whole rows write there.
__device__ __forceinline__ void before_bulk_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/// The next kernel of the stream may take what this one leaves of the chip, and make itself ready.
__device__ __forceinline__ void let_next_begin() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

/// The kernels before this one are done, and what they wrote is seen. Tables alone are read earlier.
__device__ __forceinline__ void await_previous() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

template <class T>
__device__ __forceinline__ void copy_element(unsigned to, const T* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(sizeof(T)) : "memory");
}

/// last_use: what is read need not be kept by the second-level cache.
template <bool last_use = false>
__device__ __forceinline__ void copy_vector(unsigned to, const void* from) {
    if constexpr (last_use) {
        unsigned long long policy;
        asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
        asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "l"(policy) : "memory");
    } else {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
    }
}

}  // namespace trifold::cuda::streaming
