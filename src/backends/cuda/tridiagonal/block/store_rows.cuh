// SPDX-License-Identifier: BSD-3-Clause
// x += y, which nobody else reads or writes meanwhile.
// Words per row: 1 read, 1 written. Nothing waits for an addition in double precision (red.global); in single precision such a one would make zeros of what is not normal, so that rows are loaded, some at a time,
//   and stored. Not by the copy engine, which can add what lies in shared memory: of its instruction ptxas 13.0 makes an addition of whole numbers in some places.
#pragma once

#include <cstdint>

#include "backends/cuda/tridiagonal/block/copy_engine.cuh"

namespace trifold::cuda {

/// Whether x is added to, and how where it comes from shared memory: loaded and stored by the warp; or, where others wait for the warp, reduced, if that does not make zeros. (Measured, double precision: 0.8 of
/// the time of the other way where warps are alone; 1.25 to 1.45 where not.)
enum class Adding { no, loads, reductions };
template <class T>
constexpr Adding adding(bool adds, bool coupled) {
    return !adds ? Adding::no : coupled && sizeof(T) == 8 ? Adding::reductions : Adding::loads;
}

template <class T>
__device__ __forceinline__ void add_to(T* x, T value) {
    if constexpr (sizeof(T) == 8) asm volatile("red.relaxed.gpu.global.add.f64 [%0], %1;" ::"l"(x), "d"(value) : "memory");
    else *x += value;
}

/// x, or x and what is there.
template <Adding How, class T>
__device__ __forceinline__ void store_or_add(T* x, T value) {
    if constexpr (How != Adding::no) add_to(x, value);
    else *x = value;
}

/// A thread's rows, `apart` from each other: value(i), i < min(N, count).
template <int N, bool Loads = false, class T, class Value>
__device__ __forceinline__ void add_rows_to(T* x, std::int64_t apart, int count, Value value) {
    if constexpr (sizeof(T) == 8 && !Loads) {
#pragma unroll
        for (int i = 0; i < N; ++i, x += apart)
            if (i < count) add_to(x, value(i));
    } else {
        constexpr int at_once = N < 8 ? N : 8;
        static_assert(N % at_once == 0);
#pragma unroll
        for (int first = 0; first < N; first += at_once) {
            T old[at_once];
            T* from = x;
#pragma unroll
            for (int i = 0; i < at_once; ++i, from += apart)
                if (first + i < count) old[i] = __ldcs(from);
#pragma unroll
            for (int i = 0; i < at_once; ++i, x += apart)
                if (first + i < count) __stcs(x, old[i] + value(first + i));
        }
    }
}

/// The same of two columns side by side, as vectors: halves of sectors one after the other would take twice as long.
template <int N, class Two, class T, class Value>
__device__ __forceinline__ void add_pairs_to(T* x, std::int64_t apart, Value value) {
    constexpr int at_once = N > 16 ? 8 : N;
    static_assert(N % at_once == 0 && sizeof(Two) == 2 * sizeof(T));
#pragma unroll
    for (int first = 0; first < N; first += at_once) {
        Two old[at_once];
        T* from = x;
#pragma unroll
        for (int i = 0; i < at_once; ++i, from += apart) old[i] = __ldcs(reinterpret_cast<const Two*>(from));
#pragma unroll
        for (int i = 0; i < at_once; ++i, x += apart) {
            const Two y = value(first + i);
            __stcs(reinterpret_cast<Two*>(x), Two{old[i].x + y.x, old[i].y + y.y});
        }
    }
}

/// By a warp: a run of elements from shared memory.
template <Adding How, class T>
__device__ __noinline__ void add_run(T* x, const T* y, int length, int lane) {
    if constexpr (How == Adding::reductions) {
#pragma unroll 4
        for (int i = lane; i < length; i += 32) add_to(x + i, y[i]);
        return;
    }
    constexpr int E = 16 / static_cast<int>(sizeof(T)), at_once = 4;
    struct alignas(16) Vector {
        T of[E];
    };
    int head = length, vectors = 0;
    if (offset_in_vector(x) == static_cast<int>(shared_address(y) % 16 / sizeof(T))) head = min(-offset_in_vector(x) & E - 1, length), vectors = (length - head) / E;
    auto* const to = reinterpret_cast<Vector*>(x + head);
    const auto* const from = reinterpret_cast<const Vector*>(y + head);
#pragma unroll 1
    for (int v = lane; v < vectors; v += 32 * at_once) {
        Vector sum[at_once];
#pragma unroll
        for (int i = 0; i < at_once; ++i)
            if (v + 32 * i < vectors) sum[i] = to[v + 32 * i];
#pragma unroll
        for (int i = 0; i < at_once; ++i)
            if (v + 32 * i < vectors) {
                const Vector some = from[v + 32 * i];
#pragma unroll
                for (int e = 0; e < E; ++e) sum[i].of[e] += some.of[e];
                to[v + 32 * i] = sum[i];
            }
    }
#pragma unroll 1
    for (int i = lane; i < head; i += 32) x[i] += y[i];
    for (int i = head + vectors * E + lane; i < length; i += 32) x[i] += y[i];
}

/// Asks the second-level cache for a run that will be added to, by one thread.
template <Adding How, class T>
__device__ __forceinline__ void prefetch_run(const T* x, int length) {
    if (How != Adding::loads || length <= 0) return;
    constexpr int E = 16 / static_cast<int>(sizeof(T));
    const int over = offset_in_vector(x);
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(x - over), "r"((over + length + E - 1) / E * 16) : "memory");
}

}  // namespace trifold::cuda
