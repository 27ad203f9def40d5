// SPDX-License-Identifier: BSD-3-Clause
// The chunks of a column joined, by fours. A chunk has left two relations, its first and its last unknown in terms of the unknown
// before the chunk and of the one after, or of its own last (thread/chunk.cuh). A thread closes the relations of four
// neighbours, eliminates them forwards and backwards, and leaves the same two relations of the four together, for the next level, until one
// row is left. Substitution goes down again, every lane for itself. The same elimination at every level, so the backward error is
// that of elimination (warp/lanes.cuh says why not cyclic reduction).
//
// Shared memory: `links`, the chunks', T[chunk][6][columns]; `ends`, the levels above, T[row][columns][6]. Six words: first a, c, d, last
// a, c, d. Once a block has a single row left, the blocks of the cluster send theirs to each other, and all go on with all of them.
#pragma once

#include "backends/cuda/tridiagonal/block/columns_job.hpp"
#include "backends/cuda/tridiagonal/thread/chunk.cuh"

namespace trifold::cuda {

/// The relations of one column's rows at one level: word w of row r is at[r row + w word].
template <class T>
struct JoinRows {
    T* at;
    int row, word;

    __device__ __forceinline__ Relation<T> get(int r, int w) const {
        const T* const p = at + r * row + w * word;
        return {p[0], p[word], p[2 * word]};
    }
    __device__ __forceinline__ void set(int r, int w, const Relation<T>& x) const {
        T* const p = at + r * row + w * word;
        p[0] = x.a, p[word] = x.c, p[2 * word] = x.d;
    }
    __device__ __forceinline__ Relation<T> first(int r) const { return get(r, 0); }
    __device__ __forceinline__ Relation<T> last(int r) const { return get(r, 3); }
};

/// y = d - a before - c z, with z = d' - a' before - c' z'.
template <class T>
__device__ __forceinline__ Relation<T> after_substitution(const Relation<T>& y, const Relation<T>& z) {
    return {fused(-y.c, z.a, y.a), -y.c * z.c, fused(-y.c, z.d, y.d)};
}

/// Row r with the eliminated row e before it.
template <class T>
__device__ __forceinline__ Relation<T> eliminated(const Relation<T>& r, const Relation<T>& e) {
    const T k = finite_or_zero(reciprocal(fused(-r.a, e.c, T(1))));
    return {-(r.a * k) * e.a, r.c * k, fused(-r.a, e.d, r.d) * k};
}

template <class T>
__device__ __forceinline__ T value(const Relation<T>& r, T before, T next) {
    return fused(-r.c, next, fused(-r.a, before, r.d));
}

/// Rows base … base + count - 1 (1 to 4) become one: `first` and the result, its last. All but the last row stay, in place of their
/// last relation, as x = d - a before - c x_last. Where there are fewer than four, rows x = before come first.
template <class T>
__device__ __forceinline__ Relation<T> join_four(const JoinRows<T>& rows, int base, int count, Relation<T>& first) {
    const int none = 4 - count;
    Relation<T> e[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        e[i] = {T(-1), T(0), T(0)};
        if (i >= none) {
            e[i] = rows.last(base + i - none);
            if (i < 3) e[i] = close(e[i], rows.first(base + i - none + 1));
        }
    }
#pragma unroll
    for (int i = 1; i < 4; ++i)
        if (i > none) e[i] = eliminated(e[i], e[i - 1]);
    e[1] = after_substitution(e[1], e[2]);
    e[0] = after_substitution(e[0], e[1]);
    Relation<T> lead = e[0];
#pragma unroll
    for (int i = 0; i < 3; ++i) {
        if (i >= none) rows.set(base + i - none, 3, e[i]);
        if (i == none) lead = e[i];
    }
    first = rows.first(base);
    if (count > 1) first = after_substitution(first, lead);
    return e[3];
}

/// Unknowns of three rows that follow each other: their last ones.
template <class T>
struct Three {
    T before, own, after;
};

/// From the fours next to row r's four to row r and its neighbours; `count` rows in all.
template <class T>
__device__ __forceinline__ Three<T> descend(const JoinRows<T>& rows, int r, int count, const Three<T>& up) {
    const bool end = (r & 3) == 3 || r + 1 == count;
    Three<T> x;
    x.before = r & 3 ? value(rows.last(r - 1), up.before, up.own) : up.before;
    x.own = end ? up.own : value(rows.last(r), up.before, up.own);
    if (!end) x.after = (r & 3) == 2 || r + 2 == count ? up.own : value(rows.last(r + 1), up.before, up.own);
    else x.after = r + 1 >= count ? T(0) : r + 2 == count ? up.after : value(rows.last(r + 1), up.own, up.after);
    return x;
}

// ---- what blocks of a cluster send each other: data and the news of it together, so that nothing waits for other stores ----

__device__ __forceinline__ unsigned in_block(unsigned shared, int block) {
    unsigned there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared), "r"(block));
    return there;
}

__device__ __forceinline__ void send(unsigned to, float x, float y, float z, float w, unsigned barrier) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(to), "f"(x), "f"(y), "f"(z), "f"(w),
                 "r"(barrier)
                 : "memory");
}

__device__ __forceinline__ void send(unsigned to, double x, double y, unsigned barrier) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f64 [%0], {%1, %2}, [%3];" ::"r"(to), "d"(x), "d"(y), "r"(barrier) : "memory");
}

__device__ __forceinline__ void send(unsigned to, unsigned long long x, unsigned barrier) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u64 [%0], %1, [%2];" ::"r"(to), "l"(x), "r"(barrier) : "memory");
}

/// The six words of a column to the same place in every block, by 16 bytes: each piece of them takes the same time, whatever its size.
__device__ __forceinline__ void send_relations(unsigned to, unsigned barrier, int blocks, const Relation<double>& first, const Relation<double>& last) {
#pragma unroll 1
    for (int b = 0; b < blocks; ++b) {
        const unsigned there = in_block(to, b), news = in_block(barrier, b);
        send(there, first.a, first.c, news);
        send(there + 16, first.d, last.a, news);
        send(there + 32, last.c, last.d, news);
    }
}

/// Two lanes have 48 bytes: the first of them sends 32, with two words of the second. By whole warps.
__device__ __forceinline__ void send_relations(unsigned to, unsigned barrier, int blocks, const Relation<float>& first, const Relation<float>& last) {
    const float a = __shfl_down_sync(~0u, first.a, 1), c = __shfl_down_sync(~0u, first.c, 1);
    const bool odd = threadIdx.x & 1;
#pragma unroll 1
    for (int b = 0; b < blocks; ++b) {
        const unsigned there = in_block(to, b), news = in_block(barrier, b);
        if (odd) {
            send(there + 8, first.d, last.a, last.c, last.d, news);
        } else {
            send(there, first.a, first.c, first.d, last.a, news);
            send(there + 16, last.c, last.d, a, c, news);
        }
    }
}

}  // namespace trifold::cuda
