// SPDX-License-Identifier: BSD-3-Clause
// One thread, one chunk: rows 0 … m-1 of a system are reduced to two rows, or solved between known ends.
//
//   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i]
//
// Arrays: solve_chunk's `rows` gives lower(i), diag(i), upper(i), rhs(i); it overwrites all four at i = 1 … m-2 (pivot rows) and
//   leaves x in rhs(i). The couplings to x[-1] and x[m] are read; they are 0 at the ends of the system.
// Numerics: rows are first scaled by powers of two, their largest coefficient to [2, 4): entries of different rows are compared, and one row
//   multiplied by 2^30 would always win. The unknowns x[1] … x[m-2] are eliminated from all m rows with partial pivoting among three, two that are
//   carried and the one that joins, so that a singular interior does no harm. The sum of a row's coefficients is eliminated along with them and
//   put in the place of the largest one where every row nearly cancels: else the effect of a chunk of Poisson's equation, of
//   the size 1/m, would drown in the rounding of coefficients of the size 1. A column without a pivot clears `regular`: singular.
// Source: C. Klein and R. Strzodka, Tridiagonal GPU solver with scaled partial pivoting at maximum bandwidth, ICPP 2021;
//   W. K. Grassmann, M. I. Taksar, D. P. Heyman, Regenerative analysis and steady state distributions, 1985 (the sums).
#pragma once

#include <bit>
#include <cstdint>

#ifdef __CUDACC__
#include "backends/cuda/tridiagonal/thread/chunk.cuh"
#else  // the arithmetic is tested on the host too
namespace trifold::cuda {
inline float reciprocal(float x) { return 1 / x; }
inline double reciprocal(double x) { return 1 / x; }
}  // namespace trifold::cuda
#endif

namespace trifold::cuda {

/// coefficient of x[first-1], x[first], x[last], x[last+1], and the right-hand side.
struct TwoRows {
    double a[2][4], rhs[2];
};

namespace chunk {

/// Over x[-1], x[0], x[j], x[j+1], x[j+2]; sum: 0 where there are none.
template <class T, bool Sums>
struct Row {
    T w0, w1, p, q, r, sum, rhs;
};

template <class T, bool Sums>
__device__ Row<T, Sums> one_of(bool first, const Row<T, Sums>& a, const Row<T, Sums>& b) {
    return {first ? a.w0 : b.w0, first ? a.w1 : b.w1, first ? a.p : b.p, first ? a.q : b.q, first ? a.r : b.r, Sums ? first ? a.sum : b.sum : T(0), first ? a.rhs : b.rhs};
}

template <class T, bool Sums>
__device__ void lose(Row<T, Sums>& c, const Row<T, Sums>& pivot, T inverse) {
    const T m = c.p * inverse;
    c.w0 -= m * pivot.w0, c.w1 -= m * pivot.w1;
    c.p = c.q - m * pivot.q, c.q = c.r - m * pivot.r, c.r = 0;
    c.rhs -= m * pivot.rhs;
    if (Sums) c.sum -= m * pivot.sum;
}

/// The columns x[j], x[j+1], x[j+2] alone, with the same arithmetic.
template <class T>
struct Short {
    T p, q, r, rhs;
};

template <class T>
__device__ Short<T> one_of(bool first, const Short<T>& a, const Short<T>& b) {
    return {first ? a.p : b.p, first ? a.q : b.q, first ? a.r : b.r, first ? a.rhs : b.rhs};
}

template <class T>
__device__ void lose(Short<T>& c, const Short<T>& pivot, T inverse) {
    const T m = c.p * inverse;
    c.p = c.q - m * pivot.q, c.q = c.r - m * pivot.r, c.r = 0;
    c.rhs -= m * pivot.rhs;
}

/// The power of two that brings the largest of three numbers to [2, 4); not finite where all of them are 0 or subnormal.
__device__ inline float scale_of(float l, float d, float u) {
    return std::bit_cast<float>(~std::bit_cast<std::uint32_t>(max(max(abs(l), abs(u)), abs(d))) & 0x7f800000u);
}
__device__ inline double scale_of(double l, double d, double u) {  // upper halves, ordered as the numbers are
    const auto upper = [](double x) { return static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(x) >> 32) & 0x7fffffffu; };
    return std::bit_cast<double>(static_cast<std::uint64_t>(~max(max(upper(l), upper(u)), upper(d)) & 0x7ff00000u) << 32);
}

/// The row at a scale that does not depend on the one it was given at: exact, but for right-hand sides that leave the type's range.
template <class T>
__device__ void scale_row(T& l, T& d, T& u, T& f) {
    const T scale = scale_of(l, d, u);
    l *= scale, d *= scale, u *= scale, f *= scale;
}

/// Makes `joining` the row with the largest entry in column x[j]. No branches: exchanges word by word under them were half of all instructions.
template <class R>
__device__ void choose(R& c0, R& c1, R& joining) {
    const auto s0 = abs(c0.p), s1 = abs(c1.p), s2 = abs(joining.p);
    const bool second = s1 > s0, carried = (second ? s1 : s0) > s2;
    const R larger = one_of(second, c1, c0);
    c1 = one_of(second, c0, c1);
    c0 = one_of(carried, joining, larger);
    joining = one_of(carried, larger, joining);
}

}  // namespace chunk

/// A chunk on its way, row after row from its first, as scale_row leaves them; two rows at least. Sums: as above; who reduces in twice the precision of the
/// rows does without.
template <class T, bool Sums = true>
struct Reducer {
    chunk::Row<T, Sums> c0, c1;
    int count = 0;
    bool balanced = Sums;  ///< the sum of every row is at most half of its parts
    bool regular = true;   ///< no column without a pivot so far

    __device__ void add(T l, T d, T u, T f) {
        if (count == 0) begin(l, d, u, f);
        else if (count == 1) second(l, d, u, f);
        else join(l, d, u, f);
    }

    /// The same for who knows how many rows are there.
    __device__ void begin(T l, T d, T u, T f) { c0 = {l, d, u, 0, 0, sum_of(l, d, u), f}, count = 1; }
    __device__ void second(T l, T d, T u, T f) { c1 = {0, l, d, u, 0, sum_of(l, d, u), f}, count = 2; }
    __device__ void join(T l, T d, T u, T f) { eliminate({0, 0, l, d, u, sum_of(l, d, u), f}), ++count; }

    __device__ T sum_of(T l, T d, T u) {
        if (!Sums) return 0;
        const T sum = (l + u) + d;
        balanced = balanced && abs(sum) <= (abs(l) + abs(d) + abs(u)) / 2;
        return sum;
    }

    __device__ void eliminate(chunk::Row<T, Sums> joining) {
        chunk::choose(c0, c1, joining);
        regular = regular && joining.p != T(0);
        const T inverse = reciprocal(joining.p);
        chunk::lose(c0, joining, inverse), chunk::lose(c1, joining, inverse);
    }

    __device__ TwoRows rows() const {
        TwoRows out;
        chunk::Row<T, Sums> both[2] = {c0, c1};
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            chunk::Row<T, Sums>& c = both[k];
            const T s0 = abs(c.w0), s1 = abs(c.w1), s2 = abs(c.p), s3 = abs(c.q);
            if (balanced && count > 2) {
                const T largest = max(max(s0, s1), max(s2, s3));
                if (s0 == largest) c.w0 = ((c.sum - c.w1) - c.p) - c.q;
                else if (s1 == largest) c.w1 = ((c.sum - c.w0) - c.p) - c.q;
                else if (s2 == largest) c.p = ((c.sum - c.w0) - c.w1) - c.q;
                else c.q = ((c.sum - c.w0) - c.w1) - c.p;
            }
            out.a[k][0] = c.w0, out.a[k][1] = c.w1, out.a[k][2] = c.p, out.a[k][3] = c.q, out.rhs[k] = c.rhs;
        }
        return out;
    }
};

/// Rows of a chunk on their way down, between known ends; two rows first.
template <class T>
struct Eliminator {
    chunk::Short<T> c0, c1;

    /// before, first: x[-1], x[0].
    __device__ Eliminator(chunk::Short<T> top, chunk::Short<T> second, T before, T first) {
        chunk::scale_row(top.p, top.q, top.r, top.rhs), chunk::scale_row(second.p, second.q, second.r, second.rhs);
        c0 = {top.r, 0, 0, top.rhs - top.p * before - top.q * first};
        c1 = {second.q, second.r, 0, second.rhs - second.p * first};
    }

    /// The pivot's row, whose p is 1 / pivot.
    __device__ chunk::Short<T> join(chunk::Short<T> joining) {
        chunk::scale_row(joining.p, joining.q, joining.r, joining.rhs);
        chunk::choose(c0, c1, joining);
        const T inverse = reciprocal(joining.p);
        chunk::lose(c0, joining, inverse), chunk::lose(c1, joining, inverse);
        joining.p = inverse;
        return joining;
    }
};

/// An unknown from its pivot's row and the two unknowns behind it.
template <class T>
__device__ T substituted(const chunk::Short<T>& row, T next, T beyond) {
    return (row.rhs - row.q * next - row.r * beyond) * row.p;
}

/// before, first, last, after: x[-1], x[0], x[m-1], x[m].
template <class T, class Rows>
__device__ void solve_chunk(const Rows& rows, int m, T before, T first, T last, T after) {
    const auto row = [&](int i) { return chunk::Short<T>{rows.lower(i), rows.diag(i), rows.upper(i), rows.rhs(i)}; };
    Eliminator<T> down(row(0), row(1), before, first);
    for (int j = 1; j + 1 < m; ++j) {
        const chunk::Short<T> pivot = down.join(row(j + 1));
        rows.lower(j) = pivot.p, rows.diag(j) = pivot.q, rows.upper(j) = pivot.r, rows.rhs(j) = pivot.rhs;
    }
    T next = last, beyond = after;
    for (int j = m - 2; j >= 1; --j) {
        const T now = substituted(row(j), next, beyond);
        rows.rhs(j) = now;
        beyond = next, next = now;
    }
    rows.rhs(0) = first, rows.rhs(m - 1) = last;
}

}  // namespace trifold::cuda
