// SPDX-License-Identifier: BSD-3-Clause
// Which points of a plane a thread has (planes.cuh), and numbers of a table in registers.
#pragma once

#include "backends/cuda/mesh/star.cuh"

namespace trifold::cuda::planes {

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

/// Where a point of a plane lies in shared memory: as in memory, or, where the copy engine has exchanged them, with its 16 bytes at another place of their 128.
template <class C>
__device__ __forceinline__ int in_plane(int row, int column) {
    using T = typename C::real;
    const int at = row * C::nx + column;
    if constexpr (!C::swizzled) return at;
    constexpr unsigned line = 128 / sizeof(T), unit = 16 / sizeof(T);
    return at ^ static_cast<int>((static_cast<unsigned>(at) / line & 7) * unit);
}

/// Two columns of a thread, and two rows. Found anew wherever they are wanted, from the thread's number, which keeps no registers in between.
template <class C>
struct ThreadColumns {
    int column, own_y, even, odd;  // own_y: of this block's segments; even, odd: first points of both kinds of rows

    __device__ __forceinline__ explicit ThreadColumns(int thread) : column(thread % (C::nx / 2) * 2), own_y(thread / (C::nx / 2)) {
        even = own_y * C::R_y * C::nx + in_plane<C>(0, column), odd = own_y * C::R_y * C::nx + in_plane<C>(1, column) - C::nx;
        static_assert(!C::swizzled || C::R_y * C::nx * sizeof(typename C::real) % 1024 == 0);
    }
    /// Row i of the segment.
    __device__ __forceinline__ int at(int i) const { return (i % 2 ? odd : even) + i * C::nx; }
};
template <class C>
struct ThreadRows {
    int own_x, row, turned;  // row: of this block's; turned: its first row in registers is the second one
    __device__ __forceinline__ explicit ThreadRows(int thread) : own_x(thread % C::S), row(thread / C::S * 2), turned(C::nx % 32 && C::R * sizeof(typename C::real) % 16 ? thread / C::S & 1 : 0) {}

    /// Of points that begin a vector: where those of a row begin, and from there the i-th.
    __device__ __forceinline__ int begin(int of_row) const { return in_plane<C>(of_row, own_x * C::R); }
    /// Another point of the row.
    __device__ __forceinline__ int next_to(int begin, int of_row, int i) const { return C::swizzled ? in_plane<C>(of_row, own_x * C::R + i) : begin + i; }
    static __device__ __forceinline__ int piece(int begin, int i) { return C::swizzled ? begin ^ i : begin + i; }
};
__device__ __forceinline__ int anew() {
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
}

}  // namespace trifold::cuda::planes
