// SPDX-License-Identifier: BSD-3-Clause
// Rows of up to four vectors of systems: elimination without and with pivoting, and substitution.
//
//   p = b[i] - a[i] c'[i-1]     c'[i] = c[i] / p     d'[i] = (f[i] - a[i] d'[i-1]) / p     x[i] = d'[i] - c'[i] x[i+1]
//
// Arrays   a, b, c, f: Rows, element (row i, system j of the group) at p[i·row_step + column(j)]; scratch: row i of c' at
//          s[i·pitch + j], of d' at s[i·pitch + half + j], of U's second upper diagonal at u[i·half + j]; carry: see Carry.
// Lanes    lane = system; a group is 1 to 4 vectors = independent recurrences, which hide the latency of the division.
// Writes   c', d' (forward), then x over d' or straight to its place (backward); operands are never written.
// Words    per row and system 4 read, 1 written; c' and d' (2 written, 2 read) stay in the second-level cache.
// Numerics One reciprocal per row. Elimination without pivoting has |ΔA| ≤ 4u|L||U| (Higham, Accuracy and Stability of
//          Numerical Algorithms, 2nd ed., theorem 9.14), and row i of |L||U| is |a|, |b - a c'| + |a c'|, |c|: it is as good as
//          its row of A where |a c'| is not much more than |a| + |b|. Every row is tested for |a c'| < g (|a| + |b|); the
//          test is strict, so that NaN, infinity and a zero pivot above fail it, and 0·p is summed, which is NaN
//          from the first p that is not finite. Note that cancellation in p alone, (|b| + |a c'|) / |p|, bounds no error:
//          b = 1e-8, a = c = 1 has a quotient of 1 to 2 in every row and loses half of the digits.
//          With pivoting: rows i and i+1 are exchanged where |a[i+1]| > |p| (as LAPACK's ?gtsv), per lane.
#include <cstddef>
#include <cstdint>
#include <limits>

#include "backends/cpu/simd/quotient-inl.h"
#include "backends/cpu/simd/transpose-inl.h"
#include "hwy/highway.h"

#if defined(TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_BATCH_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_BATCH_ROWS_INL_H_
#undef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_BATCH_ROWS_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_BATCH_ROWS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {

/// Where a tile's rows of one operand are. Vector k of V starts at column k·column_step, the last one at `last`: lanes
/// beyond the batch are not read, the last vector overlaps the one before instead.
template <class T>
struct Rows {
    T* p = nullptr;
    std::int64_t row_step = 0, column_step = 0, last = 0;

    /// Vectors k … k+count-1 of `vectors`.
    Rows group(int k, int count, int vectors) const {
        const std::int64_t end = k + count == vectors ? last : (k + count - 1) * column_step;
        return {p + k * column_step, row_step, column_step, end - k * column_step};
    }
    Rows skip(std::int64_t rows) const { return {p + rows * row_step, row_step, column_step, last}; }
};

/// Cache lines of one operand to be asked for on the way: per row and vector k the one at p + row·row_step + offset[k].
template <class T>
struct Ahead {
    const T* p = nullptr;
    std::int64_t row_step = 0, group_step = 0, offset[4] = {};  ///< group_step: from one vector to the next, for whole groups
};

/// The same for all four operands, spread over the rows because a processor drops prefetches that come faster than its miss
/// buffers drain. `lead`: elements from p back to the first line of a row that is not aligned.
template <class T>
struct Asks {
    Ahead<T> of[4];
    bool on = false;
    std::int64_t lead = 0;
    int every = 1, waited = 0;  ///< asks in every how-manieth row

    Asks group(std::int64_t k) const {
        Asks part = *this;
        for (Ahead<T>& a : part.of) a.p += k * a.group_step;
        return part;
    }

    template <int G>
    HWY_INLINE void in_row() {
        if (!on || ++waited < every) return;
        waited = 0;
        for (Ahead<T>& a : of) {
#pragma GCC unroll 4
            for (int k = 0; k < G; ++k) prefetch_second_level(a.p + a.offset[k]);
            if (lead) prefetch_second_level(a.p - lead);
            a.p += a.row_step;
        }
    }
};

/// What is asked for while a tile is read: lines of memory, and by transposed loads the rows from `p` on, of each operand (null: none).
template <class T>
struct Soon {
    Asks<T> asks;
    const T* p[4] = {};
};

/// What passes from row to row, W systems each: c', d', and a sum that is 0 where all tests held, else NaN.
template <class T>
struct Carry {
    T *c, *d, *test;
    Carry group(std::int64_t column) const { return {c + column, d + column, test + column}; }
};

/// The row that waits for its pivot: diagonal, upper, right-hand side; and a sum that is NaN once anything was not finite.
template <class T>
struct Waiting {
    T *diag, *upper, *rhs, *test;
    Waiting group(std::int64_t column) const { return {diag + column, upper + column, rhs + column, test + column}; }
};

/// c', d', second upper diagonal of row 0 of a tile.
template <class T>
struct Reduced {
    T *s, *u;
    std::int64_t half;
    Reduced group(std::int64_t column) const { return {s + column, u + column, half}; }
    Reduced skip(std::int64_t rows) const { return {s + rows * 2 * half, u + rows * half, half}; }
};

#define TRIFOLD_EACH(k) _Pragma("GCC unroll 4") for (int k = 0; k < G; ++k)

/// Rows 0 … rows-1 of a tile. `between` is called once per row: what it loads or asks for fills the gaps that a row's chain
/// of division, product and difference leaves.
template <int G, class D, class T = hn::TFromD<D>, class Between>
HWY_INLINE void eliminate(D d, Rows<T> a, Rows<T> b, Rows<T> c, Rows<T> f, std::int64_t rows, Reduced<T> to, Carry<T> carry, T growth,
                          Between&& between) {
    using V = hn::Vec<D>;
    constexpr int N = static_cast<int>(lanes_of<D>);
    const V one = hn::Set(d, T(1)), zero = hn::Zero(d), limit = hn::Set(d, growth);
    V cp[G], dp[G], test[G];
    decltype(hn::Lt(one, one)) good[G];
    TRIFOLD_EACH(k) {
        cp[k] = hn::Load(d, carry.c + k * N), dp[k] = hn::Load(d, carry.d + k * N), test[k] = hn::Load(d, carry.test + k * N);
        good[k] = hn::Eq(one, one);
    }
    T* HWY_RESTRICT s = to.s;
    for (std::int64_t i = 0; i < rows; ++i) {
        between();
        TRIFOLD_EACH(k) {
            const std::int64_t last = k == G - 1;
            const auto at = [&](const Rows<T>& r) HWY_ATTR { return hn::LoadU(d, r.p + (last ? r.last : k * r.column_step)); };
            const V ai = at(a), bi = at(b);
            const V t = hn::Mul(ai, cp[k]);
            const V p = hn::NegMulAdd(ai, cp[k], bi);
            const V r = hn::Div(one, p);
            good[k] = hn::And(good[k], hn::Lt(hn::Abs(t), hn::Mul(limit, hn::Add(hn::Abs(ai), hn::Abs(bi)))));
            test[k] = hn::MulAdd(p, zero, test[k]);
            cp[k] = hn::Mul(at(c), r);
            dp[k] = hn::Mul(hn::NegMulAdd(ai, dp[k], at(f)), r);
            hn::Store(cp[k], d, s + k * N);
            hn::Store(dp[k], d, s + to.half + k * N);
        }
        a.p += a.row_step, b.p += b.row_step, c.p += c.row_step, f.p += f.row_step;
        s += 2 * to.half;
    }
    const V nan = hn::Set(d, std::numeric_limits<T>::quiet_NaN());
    TRIFOLD_EACH(k) {
        hn::Store(cp[k], d, carry.c + k * N), hn::Store(dp[k], d, carry.d + k * N);
        hn::Store(hn::IfThenElse(good[k], test[k], nan), d, carry.test + k * N);
    }
}

/// Takes `rows` rows in; row -1 of `to` receives the row that waited before, and so on: always one behind. Lanes whose
/// `test` is NaN are replaced, the others keep what `eliminate` left. `between`: as there.
template <int G, class D, class T = hn::TFromD<D>, class Between>
HWY_INLINE void eliminate_pivoted(D d, Rows<T> a, Rows<T> b, Rows<T> c, Rows<T> f, std::int64_t rows, Reduced<T> to, Waiting<T> waiting,
                                  const T* test, Between&& between) {
    using V = hn::Vec<D>;
    constexpr int N = static_cast<int>(lanes_of<D>);
    const V one = hn::Set(d, T(1)), zero = hn::Zero(d);
    V diag[G], upper[G], rhs[G], sum[G];
    TRIFOLD_EACH(k) {
        diag[k] = hn::Load(d, waiting.diag + k * N), upper[k] = hn::Load(d, waiting.upper + k * N);
        rhs[k] = hn::Load(d, waiting.rhs + k * N), sum[k] = hn::Load(d, waiting.test + k * N);
    }
    to = to.skip(-1);
    for (std::int64_t i = 0; i < rows; ++i) {
        between();
        TRIFOLD_EACH(k) {
            const auto at = [&](const Rows<T>& r) HWY_ATTR { return hn::LoadU(d, r.p + (k == G - 1 ? r.last : k * r.column_step)); };
            const V ai = at(a), bi = at(b), ci = at(c), fi = at(f);
            const auto swap = hn::Gt(hn::Abs(ai), hn::Abs(diag[k]));
            const auto replace = hn::IsNaN(hn::Load(d, test + k * N));
            const V pivot = hn::IfThenElse(swap, ai, diag[k]), r = hn::Div(one, pivot);
            const V left = hn::IfThenElse(swap, diag[k], ai);  // what is eliminated
            const V first = hn::IfThenElse(swap, bi, upper[k]), other = hn::IfThenElse(swap, upper[k], bi);
            const V value = hn::IfThenElse(swap, fi, rhs[k]), other_value = hn::IfThenElse(swap, rhs[k], fi);
            const V second = hn::IfThenElseZero(swap, ci);
            // With the rounded quotients that x will be made of, not with a multiplier: a row may wait for thousands of others, and where these are equal so are their roundings, which would add up.
            // q2 is 1 where a matrix is symmetric, and then its product with `left` is not rounded either.
            const V q1 = hn::Mul(first, r), q2 = quotient(d, second, pivot, r), value_q = hn::Mul(value, r);
            T* const s = to.s + k * N;
            hn::Store(hn::IfThenElse(replace, q1, hn::Load(d, s)), d, s);
            hn::Store(hn::IfThenElse(replace, value_q, hn::Load(d, s + to.half)), d, s + to.half);
            hn::Store(hn::IfThenElseZero(replace, q2), d, to.u + k * N);
            sum[k] = hn::MulAdd(hn::Add(hn::Add(hn::Abs(ai), hn::Abs(bi)), hn::Abs(ci)), zero, sum[k]);
            diag[k] = hn::NegMulAdd(left, q1, other);
            upper[k] = hn::IfThenElse(swap, hn::NegMulAdd(left, q2, zero), ci);
            rhs[k] = hn::NegMulAdd(left, value_q, other_value);
        }
        a.p += a.row_step, b.p += b.row_step, c.p += c.row_step, f.p += f.row_step;
        to = to.skip(1);
    }
    TRIFOLD_EACH(k) {
        hn::Store(diag[k], d, waiting.diag + k * N), hn::Store(upper[k], d, waiting.upper + k * N);
        hn::Store(rhs[k], d, waiting.rhs + k * N), hn::Store(sum[k], d, waiting.test + k * N);
    }
}

/// How `substitute` leaves its rows.
enum class Into { scratch, place, stream };

/// Rows rows-1 … 0 of a tile; x1 is x of the row below the tile on entry and of row 0 on return.
template <int G, Into into, class D, class T = hn::TFromD<D>, class Between>
HWY_INLINE void substitute(D d, Reduced<T> from, std::int64_t rows, Rows<T> x, T* x1, Between&& between) {
    using V = hn::Vec<D>;
    constexpr int N = static_cast<int>(lanes_of<D>);
    V next[G];
    TRIFOLD_EACH(k) next[k] = hn::Load(d, x1 + k * N);
    T* s = from.s + (rows - 1) * 2 * from.half;
    x.p += (rows - 1) * x.row_step;
    for (std::int64_t i = rows; i > 0; --i) {
        between();
        TRIFOLD_EACH(k) {
            next[k] = hn::NegMulAdd(hn::Load(d, s + k * N), next[k], hn::Load(d, s + from.half + k * N));
            T* const place = x.p + (k == G - 1 ? x.last : k * x.column_step);
            if constexpr (into == Into::scratch) hn::Store(next[k], d, s + from.half + k * N);
            else if constexpr (into == Into::stream) hn::Stream(next[k], d, place);
            else hn::StoreU(next[k], d, place);
        }
        s -= 2 * from.half;
        x.p -= x.row_step;
    }
    TRIFOLD_EACH(k) hn::Store(next[k], d, x1 + k * N);
}

/// The same with U's second upper diagonal (x2: two rows below) and with lanes that keep d' as it is (`frozen` not 0).
template <int G, class D, class T = hn::TFromD<D>>
HWY_INLINE void substitute_pivoted(D d, Reduced<T> from, std::int64_t rows, T* x1, T* x2, const T* frozen, bool second) {
    using V = hn::Vec<D>;
    constexpr int N = static_cast<int>(lanes_of<D>);
    V next[G], after[G];
    hn::Mask<D> keep[G];
    TRIFOLD_EACH(k) {
        next[k] = hn::Load(d, x1 + k * N), after[k] = hn::Load(d, x2 + k * N);
        keep[k] = hn::Ne(hn::Load(d, frozen + k * N), hn::Zero(d));
    }
    for (std::int64_t i = rows - 1; i >= 0; --i) {
        TRIFOLD_EACH(k) {
            T* const s = from.s + i * 2 * from.half + k * N;
            const V y = hn::Load(d, s + from.half);
            V value = hn::NegMulAdd(hn::Load(d, s), next[k], y);
            // Of lanes that were not pivoted nothing is taken: what it would leave of -0 depends on which systems lie beside them.
            // Last, although the other order would not have to wait for the row below: where pivots are exchanged x two rows below is what weighs.
            if (second) {
                const V u = hn::Load(d, from.u + i * from.half + k * N);
                value = hn::IfThenElse(hn::Eq(u, hn::Zero(d)), value, hn::NegMulAdd(u, after[k], value));
            }
            after[k] = next[k];
            next[k] = hn::IfThenElse(keep[k], y, value);
            hn::Store(next[k], d, s + from.half);
        }
    }
    TRIFOLD_EACH(k) hn::Store(next[k], d, x1 + k * N), hn::Store(after[k], d, x2 + k * N);
}

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
