// SPDX-License-Identifier: BSD-3-Clause
// Which points of a plane a thread has (planes.cuh), what a right-hand side sees around them, and numbers of a table in registers.
#pragma once

namespace trifold::cuda::planes {

template <class T, int count>
struct alignas(count * sizeof(T)) Values {
    T at[count];
};

/// R numbers of a table that begins at a vector.
template <class T, int R>
__device__ __forceinline__ void read_row(const T* table, T (&f)[R]) {
    constexpr int V = 16 / static_cast<int>(sizeof(T));
#pragma unroll
    for (int i = 0; i < R; i += V) {
        const Values<T, V> four = *reinterpret_cast<const Values<T, V>*>(table + i);
#pragma unroll
        for (int v = 0; v < V; ++v)
            if (i + v < R) f[i + v] = four.at[v];
    }
}

/// Two columns of a thread, and two rows. Found anew wherever they are wanted, from the thread's number, which keeps no registers in between.
template <class C>
struct ThreadColumns {
    int column, own_y;
    __device__ __forceinline__ explicit ThreadColumns(int thread) : column(thread % (C::n / 2) * 2), own_y(thread / (C::n / 2)) {}
};
template <class C>
struct ThreadRows {
    int own_x, row, turned;  // turned: its first row in registers is the second one
    __device__ __forceinline__ explicit ThreadRows(int thread) : own_x(thread % C::S), row(thread / C::S * 2), turned(C::n % 32 ? thread / C::S & 1 : 0) {}
};
__device__ __forceinline__ int anew() {
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
}

/// A point of two rows of a plane and what is around it.
template <class C, int V>
struct NearPlanes {
    using T = typename C::real;
    const T (&own)[2][C::R], (&side)[2][2];          ///< points of the lane, and beyond its first and last one
    const Values<T, V> (&outer)[2], (&low)[2], (&high)[2];  ///< of the rows beside the pair, and of the planes below and above
    int k, i;
    bool second;                                     ///< whether row k is the pair's second one

    template <int f, int dx, int dy, int dz>
    __device__ __forceinline__ T at() const {
        static_assert(f == C::target && dx * dx + dy * dy + dz * dz <= 1, "boxes that are solved in one pass a step read a star of the target");
        if (dx < 0) return i ? own[k][i ? i - 1 : 0] : side[k][0];
        if (dx > 0) return i < C::R - 1 ? own[k][i < C::R - 1 ? i + 1 : 0] : side[k][1];
        if (dy != 0) {
            const T partner = own[1 - k][i], beside = outer[k].at[i % V];
            return second == (dy < 0) ? partner : beside;
        }
        if (dz < 0) return low[k].at[i % V];
        if (dz > 0) return high[k].at[i % V];
        return own[k][i];
    }
};

}  // namespace trifold::cuda::planes
