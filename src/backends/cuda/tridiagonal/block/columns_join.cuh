// SPDX-License-Identifier: BSD-3-Clause
// The chunks of a column joined. A chunk has left two relations, its first and its last unknown in terms of the unknown before the chunk and
// of the one after, or of its own last (thread/chunk.cuh): together a tridiagonal system in the last unknowns of all chunks.
//
// One thread per column eliminates it, a row after the other: what a row costs is the latency of one reciprocal (some 70 cycles in double
// precision), where a tree of joins costs several and a barrier at every level.
//
//   In a block whose columns go on in others, `reduce_rows` leaves the same two relations of the block, and its rows in terms of what is
//   before the block and of its last unknown. Of these the cluster's blocks tell each other, and each solves for all blocks.
//   `solve_rows`, at the top, eliminates from both ends towards the middle at a time, and gives the unknowns.
//
// All lanes use the very same numbers: were an unknown computed twice in different orders, neighbours' rows would differ by errors that grow with the
// condition number (warp/lanes.cuh). Nothing is pivoted, and what is not finite stays in its column, where the check finds it.
// Shared memory: T[row][columns][6], the words of a row: first a, c, d, last a, c, d. Loops are unrolled, counts and strides known, so that loads do not
// wait for stores.
#pragma once

#include "backends/cuda/tridiagonal/block/copy_engine.cuh"
#include "backends/cuda/tridiagonal/thread/chunk.cuh"
#include "backends/cuda/tridiagonal/thread/weight.cuh"

namespace trifold::cuda {

template <class T>
struct ColumnVector;
template <>
struct ColumnVector<float> {
    using type = float2;
};
template <>
struct ColumnVector<double> {
    using type = double2;
};

/// The rows of one column. Columns: their number, 0 where it is known at run time only.
template <class T, int Columns = 0>
struct JoinRows {
    using Two = typename ColumnVector<T>::type;
    T* at;
    int columns;

    __device__ __forceinline__ T* of(int r) const { return at + r * 6 * (Columns ? Columns : columns); }
    __device__ __forceinline__ Relation<T> first(int r) const {
        const Two x = *reinterpret_cast<const Two*>(of(r));
        return {x.x, x.y, of(r)[2]};
    }
    __device__ __forceinline__ Relation<T> last(int r) const {
        const Two x = *reinterpret_cast<const Two*>(of(r) + 4);
        return {of(r)[3], x.x, x.y};
    }
    __device__ __forceinline__ void set(int r, const Relation<T>& first, const Relation<T>& last) const {
        auto* const to = reinterpret_cast<Two*>(of(r));
        to[0] = {first.a, first.c}, to[1] = {first.d, last.a}, to[2] = {last.c, last.d};
    }
    __device__ __forceinline__ T& x(int r) const { return of(r)[5]; }  ///< once solved
    __device__ __forceinline__ void set_last(int r, const Relation<T>& x) const {
        of(r)[3] = x.a;
        *reinterpret_cast<Two*>(of(r) + 4) = {x.c, x.d};
    }
};

template <class T>
__device__ __forceinline__ T value(const Relation<T>& r, T before, T next) {
    return fused(-r.c, next, fused(-r.a, before, r.d));
}

/// y = d - a before - c z, with z = d' - a' before - c' z'.
template <class T>
__device__ __forceinline__ Relation<T> after_substitution(const Relation<T>& y, const Relation<T>& z) {
    return {fused(-y.c, z.a, y.a), -y.c * z.c, fused(-y.c, z.d, y.d)};
}

/// What a chunk, or a block's rows, must know: the last unknown before them, their own last, the first after them.
template <class T>
struct Three {
    T before, own, after;
};

/// a x_before + b x + c x_next = d.
template <class T>
struct JoinRow {
    T a, b, c, d;

    /// x in terms of the last unknowns before and after: `next` is the first unknown after x.
    __device__ __forceinline__ JoinRow(const Relation<T>& x, const Relation<T>& next)
        : a(x.a), b(fused(-x.c, next.a, T(1))), c(-x.c * next.c), d(fused(-x.c, next.d, x.d)) {}
};

/// Rows 0 … count - 1 ≤ Most - 1 become one: `first` and the result, its last. All but the last row stay, in place of their last relation, as x = d - a before -
/// c x_last. `fine` becomes false where a row weighs too much or d is too large.
template <int Most, class T, int Columns>
__device__ __forceinline__ Relation<T> reduce_rows(const JoinRows<T, Columns>& rows, Relation<T>& first, bool& fine, int count = Most) {
    const auto watch = [&](const Relation<T>& r) { fine = fine && fabs(r.a) + fabs(r.c) <= row_weight<T> && fabs(r.d) <= join_limit<T>; };
    Relation<T> before{T(-1), T(0), T(0)};  // a row x = before comes first
    T c;
#pragma unroll
    for (int i = 0; i + 1 < Most; ++i) {
        if (i + 1 >= count) continue;
        const JoinRow<T> row(rows.last(i), rows.first(i + 1));
        const T k = divide_by(fused(-row.a, before.c, row.b), row.c, c);
        before = {-(row.a * k) * before.a, c, fused(-row.a, before.d, row.d) * k};
        rows.set_last(i, before);
        watch(before);
    }
    const Relation<T> own = rows.last(count - 1);
    const T k = divide_by(fused(-own.a, before.c, T(1)), own.c, c);
    const Relation<T> last{-(own.a * k) * before.a, c, fused(-own.a, before.d, own.d) * k};
    watch(last);
#pragma unroll
    for (int i = Most - 3; i >= 0; --i) {
        if (i + 2 >= count) continue;
        before = after_substitution(rows.last(i), before);
        rows.set_last(i, before);
    }
    first = rows.first(0);
    if (count > 1) first = after_substitution(first, before);
    return last;
}

/// Rows 0 … count - 1 of a ring, where the first one comes after the last one: the unknown of row r, and of the one before it. By two lanes, `apart` from each other (`low`: the second one; both must
/// come here, and all such pairs of the warp): each reduces a half of the rows, Longest at most, and these two rows are closed; or, apart = 0, by one lane that has all. What the second one returns is nothing.
/// All that solve a ring get the same numbers. Overwritten: last relations.
template <int Longest, class T, int Columns>
__device__ __forceinline__ Three<T> close_rows(const JoinRows<T, Columns>& rows, int count, int r, int apart, bool low, bool& fine) {
    const unsigned pairs = apart == 16 || apart == 0 ? ~0u : (1u << 2 * apart) - 1u;
    const int middle = apart ? (count + 1) / 2 : count, begin = low ? middle : 0, size = low ? count - middle : middle;
    // Nothing is stored before all has been read: loads would wait for stores.
    Relation<T> before{T(-1), T(0), T(0)}, kept[Longest];
    T c;
#pragma unroll
    for (int i = 0; i < Longest; ++i) {
        if (i >= size) continue;
        // Behind its last row comes what comes after it.
        const JoinRow<T> row(rows.last(begin + i), i + 1 == size ? Relation<T>{T(0), T(-1), T(0)} : rows.first(begin + i + 1));
        const T k = divide_by(fused(-row.a, before.c, row.b), row.c, c);
        before = {-(row.a * k) * before.a, c, fused(-row.a, before.d, row.d) * k};
        kept[i] = before;
        fine = fine && fabs(before.a) + fabs(before.c) <= row_weight<T> && fabs(before.d) <= join_limit<T>;
    }
    Relation<T> last = before, first = rows.first(size > 0 ? begin : 0);
#pragma unroll
    for (int i = Longest - 2; i >= 0; --i) {
        if (i + 1 >= size) continue;
        before = i + 2 == size ? kept[i] : after_substitution(kept[i], before);
        rows.set_last(begin + i, before);
    }
    if (size > 1) first = after_substitution(first, before);
    if (!fine) last.d = T(__int_as_float(0x7fffffff));
    T x[2];
    if (apart && count > 1) {  // two rows, each after the other one
        const auto other = [&](T mine) { return __shfl_xor_sync(pairs, mine, apart); };
        const Relation<T> others_first{other(first.a), other(first.c), other(first.d)}, others_last{other(last.a), other(last.c), other(last.d)};
        const JoinRow<T> upper(low ? others_last : last, low ? first : others_first), lower(low ? last : others_last, low ? others_first : first);
        const T over = upper.a + upper.c, under = lower.a + lower.c, k = divide_by(upper.b, over, c), d = upper.d * k;
        x[1] = fused(-under, d, lower.d) * reciprocal(fused(-under, c, lower.b));
        x[0] = fused(-c, x[1], d);
        __syncwarp(pairs);  // what the other one has stored
    } else {
        const JoinRow<T> own(last, first);
        x[0] = x[1] = own.d * reciprocal(own.a + own.b + own.c);
    }
    fine = fabs(x[0]) <= join_limit<T> && fabs(x[1]) <= join_limit<T>;
    const auto at = [&](int row) {
        const bool below = row >= middle;
        const T own = below ? x[1] : x[0], next = below ? x[0] : x[1];
        return row + 1 == middle || row + 1 == count ? own : value(rows.last(row), next, own);
    };
    return {at(r > 0 ? r - 1 : count - 1), at(r), T(0)};
}

/// Calls give(i, x) for the unknowns of all rows, of which there are `count` ≤ Most; nothing comes before the first one or after the last one.
/// `fine` becomes false where a row weighs too much or an unknown is too large.
template <int Most, class T, int Columns, class Give>
__device__ __forceinline__ void solve_rows(const JoinRows<T, Columns>& rows, int count, bool& fine, Give take) {
    const auto give = [&](int i, T x) { fine = fine && fabs(x) <= join_limit<T>, take(i, x); };
    constexpr int middle = Most / 2;
    const Relation<T> none{T(0), T(0), T(0)};
    const auto row = [&](int i) { return JoinRow<T>(i < count ? rows.last(i) : none, i + 1 < count ? rows.first(i + 1) : none); };
    T above_c[middle], above_d[middle], below_a[middle], below_d[middle];  // x = d - c x_next above the middle, x = d - a x_before below it
#pragma unroll
    for (int i = 0; i < middle; ++i) {
        const JoinRow<T> up = row(i);
        const T k = divide_by(i ? fused(-up.a, above_c[i ? i - 1 : 0], up.b) : up.b, up.c, above_c[i]);
        above_d[i] = (i ? fused(-up.a, above_d[i ? i - 1 : 0], up.d) : up.d) * k;
        fine = fine && fabs(above_c[i]) <= row_weight<T>;
        if (i + 1 < middle) {
            const JoinRow<T> low = row(Most - 1 - i);
            const T l = divide_by(i ? fused(-low.c, below_a[i ? i - 1 : 0], low.b) : low.b, low.a, below_a[i]);
            below_d[i] = (i ? fused(-low.c, below_d[i ? i - 1 : 0], low.d) : low.d) * l;
            fine = fine && fabs(below_a[i]) <= row_weight<T>;
        }
    }
    constexpr int last = middle - 2;  // of the rows below
    JoinRow<T> own = row(middle);
    T p = fused(-own.a, above_c[middle - 1], own.b), d = fused(-own.a, above_d[middle - 1], own.d);
    if constexpr (last >= 0) p = fused(-own.c, below_a[last], p), d = fused(-own.c, below_d[last], d);
    T x = d * reciprocal(p), y = x;
    give(middle, x);
#pragma unroll
    for (int i = 1; i <= middle; ++i) {
        x = fused(-above_c[middle - i], x, above_d[middle - i]);
        give(middle - i, x);
        if (i < middle) {
            y = fused(-below_a[middle - 1 - i], y, below_d[middle - 1 - i]);
            give(middle + i, y);
        }
    }
}

/// The same for any count up to 16, or to a smaller `Most`.
template <int Most = 16, class T, int Columns, class Give>
__device__ __forceinline__ void solve_few_rows(const JoinRows<T, Columns>& rows, int count, bool& fine, Give give) {
    if (count <= 2) solve_rows<2>(rows, count, fine, give);
    else if (Most <= 4 || count <= 4) solve_rows<4>(rows, count, fine, give);
    else if (Most <= 8 || count <= 8) solve_rows<8>(rows, count, fine, give);
    else solve_rows<16>(rows, count, fine, give);
}

/// Of row r, once solved.
template <class T, int Columns>
__device__ __forceinline__ Three<T> around(const JoinRows<T, Columns>& rows, int r, int count) {
    Three<T> x{r > 0 ? rows.x(r - 1) : T(0), rows.x(r), T(0)};
    if (r + 1 < count) x.after = value(rows.first(r + 1), x.own, rows.x(r + 1));
    return x;
}

/// Of row r, where `reduce_rows` has been and `block` is around all rows.
template <class T, int Columns>
__device__ __forceinline__ Three<T> within(const JoinRows<T, Columns>& rows, int r, int count, const Three<T>& block) {
    Three<T> x = block;
    if (r > 0) x.before = value(rows.last(r - 1), block.before, block.own);
    if (r + 1 < count) {
        x.own = value(rows.last(r), block.before, block.own);
        x.after = value(rows.first(r + 1), x.own, r + 2 < count ? value(rows.last(r + 1), block.before, block.own) : block.own);
    }
    return x;
}

// ---- what blocks of a cluster send each other: data and the news of it together, so that nothing waits for other stores ----

/// The six words of a column to the same place in every block, the next one first.
template <class T>
__device__ __forceinline__ void send_relations(unsigned to, unsigned barrier, int rank, int blocks, const Relation<T>& first, const Relation<T>& last) {
    constexpr unsigned two = 2 * sizeof(T);
    int b = rank;
#pragma unroll 1
    for (int i = 0; i < blocks; ++i) {
        if (++b == blocks) b = 0;
        const unsigned there = in_block(to, b), news = in_block(barrier, b);
        send(there, first.a, first.c, news);
        send(there + two, first.d, last.a, news);
        send(there + 2 * two, last.c, last.d, news);
    }
}

}  // namespace trifold::cuda
