// SPDX-License-Identifier: BSD-3-Clause
// One row of elimination with partial pivoting among two rows, the pending one and the next, for chunks of a matrix that forgets nothing: what `reduce` and
// `finish` do there. Included once per Highway target.
//
// Equation   a_i x[i-1] + b_i x[i] + c_i x[i+1] = r_i,  rows s … e of a chunk, lane = chunk
// Pending    p_- x[s-1] + p_0 x[i] + p_1 x[i+1] = p_r; row i+1, (a, b, c | r) on x[i], x[i+1], x[i+2], joins and x[i] leaves, as in gtsv
// First      x[s] + f_- x[s-1] + f_0 x[i] + f_1 x[i+1] = f_r goes along and is never a pivot: together both rows say what `reduce` has to. `largest` is the
//            largest |f_0|; where it is beyond some limit, a leading block of the chunk is nearly singular, and three rows do better
// Numerics   the other row loses the pivot row as x will be made of it, by rounded quotients: a row may wait through the whole chunk, and where rows are equal
//            what a multiplier misses of each would add up in it
// Work       22 and 18 operations and one division per row in the two passes, where three rows take 35 and two, 22 and one
// Source     docs/algorithms/two_pass.md, "Two rows where nothing is forgotten"
#include "hwy/highway.h"

#include "backends/cpu/simd/quotient-inl.h"
#include "backends/cpu/tridiagonal/reduce_tiles-inl.h"
#include "backends/cpu/tridiagonal/sweep_job.hpp"

#if defined(TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_TWO_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_TWO_ROW_INL_H_
#undef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_TWO_ROW_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_TWO_ROW_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {

/// -m·v where the mask is set, `no` elsewhere.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V masked_neg_mul(D d, hn::Mask<D> mask, V m, V v, V no) {
    return hn::IfThenElse(mask, hn::NegMulAdd(m, v, hn::Zero(d)), no);
}

/// The rows that meet at x[i]: the pivot row x[i] + q1 x[i+1] + q2 x[i+2] = q_r, and the other one, from which x[i] goes.
template <class D>
struct Meeting {
    using V = hn::Vec<D>;
    hn::Mask<D> joins;  ///< the joining row is the pivot row
    V inverse, left, q1, q2, q_r, other_x1, other_r;

    HWY_INLINE Meeting(D d, V x0, V x1, V r, V a, V b, V c, V right) {
        const Sorted<D> sorted = sort_by_magnitude(d, x0, a);
        joins = sorted.q_wins;
        inverse = hn::Div(hn::Set(d, hn::TFromD<D>(1)), sorted.larger);
        left = hn::IfThenElse(joins, x0, a);  // sorted.smaller has no NaN, and nothing else would show one
        q1 = hn::Mul(hn::IfThenElse(joins, b, x1), inverse), other_x1 = hn::IfThenElse(joins, x1, b);
        q2 = hn::IfThenElseZero(joins, quotient(d, c, sorted.larger, inverse));
        q_r = hn::Mul(hn::IfThenElse(joins, right, r), inverse), other_r = hn::IfThenElse(joins, r, right);
    }
    HWY_INLINE V x1_without(D d, V c) const { return masked_neg_mul(d, joins, left, q2, c); }
};

template <class D, Work work = Work::solve>
struct TwoRowReduce {
    using V = hn::Vec<D>;
    V before, x0, x1, r;
    V f_before, f_x0, f_x1, f_r;
    V largest;

    HWY_INLINE void start(D d, Tile<D>& tile) {
        before = hn::Load(d, tile.row(lower, 0)), x0 = hn::Load(d, tile.row(diag, 0)), x1 = hn::Load(d, tile.row(upper, 0)), r = hn::Load(d, tile.row(rhs, 0));
        f_before = f_x1 = f_r = largest = hn::Zero(d), f_x0 = hn::Set(d, hn::TFromD<D>(-1));
    }

    HWY_INLINE void step(D d, Tile<D>& tile, int i) {
        const V a = hn::Load(d, tile.row(lower, i)), b = hn::Load(d, tile.row(diag, i)), c = hn::Load(d, tile.row(upper, i));
        const V right = hn::Load(d, tile.row(rhs, i));
        if constexpr (work != Work::solve) {
            x0 = hn::Xor(x0, a), x1 = hn::Xor(x1, b), r = hn::Xor(r, c), before = hn::Xor(before, right);
            return;
        }
        const Meeting<D> m(d, x0, x1, r, a, b, c, right);
        const auto stays = hn::Not(m.joins);
        const V q_before = hn::IfThenElseZero(stays, hn::Mul(before, m.inverse)), of_first = f_x0;
        f_before = hn::NegMulAdd(of_first, q_before, f_before);
        f_x0 = hn::NegMulAdd(of_first, m.q1, f_x1), f_x1 = hn::NegMulAdd(of_first, m.q2, hn::Zero(d));
        f_r = hn::NegMulAdd(of_first, m.q_r, f_r);
        largest = of_larger_magnitude(d, largest, f_x0);
        before = masked_neg_mul(d, stays, m.left, q_before, before);
        x0 = hn::NegMulAdd(m.left, m.q1, m.other_x1), x1 = m.x1_without(d, c);
        r = hn::NegMulAdd(m.left, m.q_r, m.other_r);
    }
};

template <class D, Work work = Work::solve>
struct TwoRowFinish {
    using T = hn::TFromD<D>;
    using V = hn::Vec<D>;
    static constexpr int lanes = Tile<D>::lanes, words = 3;
    static constexpr bool solves = work == Work::solve;
    V x0, x1, r;
    V matrix;  ///< its largest entry
    V near, far, size;

    /// With x[s-1] known.
    HWY_INLINE void start(D d, Tile<D>& tile, V x_before) {
        x0 = hn::Load(d, tile.row(diag, 0)), x1 = hn::Load(d, tile.row(upper, 0));
        r = hn::NegMulAdd(hn::Load(d, tile.row(lower, 0)), x_before, hn::Load(d, tile.row(rhs, 0)));
        matrix = of_larger_magnitude(d, x0, x1);
    }

    /// u1, u2, d of the pivot row x[i] = d - u1 x[i+1] - u2 x[i+2] go to `pivot_row`.
    HWY_INLINE void step(D d, Tile<D>& tile, int i, T* HWY_RESTRICT pivot_row) {
        const V a = hn::Load(d, tile.row(lower, i)), b = hn::Load(d, tile.row(diag, i)), c = hn::Load(d, tile.row(upper, i));
        const V right = hn::Load(d, tile.row(rhs, i));
        if constexpr (work != Work::solve) {
            hn::Store(hn::Xor(a, b), d, pivot_row), hn::Store(hn::Xor(b, c), d, pivot_row + lanes), hn::Store(hn::Xor(c, right), d, pivot_row + 2 * lanes);
            return;
        }
        const Meeting<D> m(d, x0, x1, r, a, b, c, right);
        matrix = of_larger_magnitude(d, of_larger_magnitude(d, matrix, a), of_larger_magnitude(d, b, c));
        hn::Store(m.q1, d, pivot_row), hn::Store(m.q2, d, pivot_row + lanes), hn::Store(m.q_r, d, pivot_row + 2 * lanes);
        x0 = hn::NegMulAdd(m.left, m.q1, m.other_x1), x1 = m.x1_without(d, c);
        r = hn::NegMulAdd(m.left, m.q_r, m.other_r);
    }

    /// What is left of the chunk's equations with x[e], x[e+1] known.
    HWY_INLINE V left(V last, V after) const { return hn::NegMulAdd(x0, last, hn::NegMulAdd(x1, after, r)); }

    HWY_INLINE bool fit(D) const { return true; }
    HWY_INLINE V largest() const { return matrix; }
    HWY_INLINE void turn(V last, V after) { near = size = last, far = after; }
    HWY_INLINE V first() const { return near; }
    HWY_INLINE V substitute(D d, const T* HWY_RESTRICT pivot_row) {
        const V u1 = hn::Load(d, pivot_row), u2 = hn::Load(d, pivot_row + lanes), right = hn::Load(d, pivot_row + 2 * lanes);
        if constexpr (work != Work::solve) return hn::Xor(hn::Xor(u1, u2), right);
        const V rest = hn::NegMulAdd(u2, far, right);
        far = near;
        near = hn::NegMulAdd(u1, near, rest);
        size = of_larger_magnitude(d, size, near);
        return near;
    }
};

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
