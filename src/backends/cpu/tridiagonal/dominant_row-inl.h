// SPDX-License-Identifier: BSD-3-Clause
// One row of elimination without exchanges for chunks whose rows are those of diffusion, dominant and with couplings of the other sign: what `reduce` and `finish` do
// there. Included once per Highway target.
//
// Equation   a_i x[i-1] + b_i x[i] + c_i x[i+1] = r_i,  rows s … e of a chunk, lane = chunk; A = -a_i, G = -c_i and r_i are taken with the sign that makes b_s positive
// Pending    p x[i] = r + F x[s-1] + G x[i+1]. Row i+1 joins and x[i] leaves. Both passes do this, by the same operations, so that the ends that the first pass
//            led to fit the second one's equations to a rounding
// Excess     e = p - F - G is carried along, and p made of it: e' = b - A - G' + A e / p, F' = A F / p, p' = e' + F' + G'. Nothing cancels, so a pivot has a few
//            roundings however many rows went before, and so has a sum of next to nothing (W. K. Grassmann, M. I. Taksar, D. P. Heyman 1985, for Markov chains)
// Condition  e ≥ -2^-9 p, F ≥ 0 and G ≥ 0 in every row. |L||U| is then at most about 3 |A|, row by row, so that no row needs an exchange or a look at its residual, and
//            what is carried through 500 rows grows by no more than e. Rows whose sums are zero but for rounding pass
// First      x[s] = Q + B x[s-1] + C x[i] goes along in `reduce`, with f = 1 - B - C: of B and f the smaller one is known better, and says the other
// Work       24 operations and one division per row in the first pass; 25, one division, two stores and the way back, 12 operations, in the second
// Source     docs/algorithms/two_pass.md, "Dominant rows"
#include "hwy/highway.h"

#include "backends/cpu/tridiagonal/reduce_tiles-inl.h"
#include "backends/cpu/tridiagonal/sweep_job.hpp"

#if defined(TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_DOMINANT_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_DOMINANT_ROW_INL_H_
#undef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_DOMINANT_ROW_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_DOMINANT_ROW_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {

/// Pivots between these, so that what is flushed to zero or overflows is nothing beside them.
template <class T>
struct PivotRange {
    static constexpr T least = sizeof(T) == 8 ? T(1e-270) : T(1e-28), most = sizeof(T) == 8 ? T(1e270) : T(1e28);
    /// Of a pivot: what is smaller in its row is taken for zero, before it gets so small that arithmetic is slow.
    static constexpr T nothing = sizeof(T) == 8 ? T(1e-60) : T(1e-18);
};

/// The pending row of every lane's chunk.
template <class D>
struct DominantPending {
    using T = hn::TFromD<D>;
    using V = hn::Vec<D>;
    /// x[i] = r + before x[s-1] + next x[i+1]. Where next is near 1 for hundreds of rows its roundings would add up, those of what it lacks of 1 do not: above 1/2 w is
    /// next - 1, and below zero; else next.
    struct Pivot {
        V r, before, excess, next, w;
    };
    V p, excess, before, next, r;
    V fall;         ///< p - next
    V least, most;  ///< of what must not be negative, and of p
    V flip;         ///< the sign of b_s

    HWY_INLINE void start(D d, Tile<D>& tile) {
        flip = hn::And(hn::Load(d, tile.row(diag, 0)), hn::SignBit(d));
        least = hn::Set(d, hwy::HighestValue<T>()), most = hn::Zero(d);
        const Row row = load(d, tile, 0);
        excess = row.excess, before = row.a, next = row.c, r = row.r;
        take_pivot(d);
    }
    HWY_INLINE Pivot pivot(D d) const {
        const V inverse = hn::Div(hn::Set(d, T(1)), p);
        const V of_next = hn::Mul(next, inverse), lacks = hn::Min(hn::NegMulAdd(fall, inverse, hn::Zero(d)), hn::Set(d, -PivotRange<T>::nothing));
        return {hn::Mul(r, inverse), hn::Mul(before, inverse), hn::Mul(excess, inverse), of_next, hn::IfThenElse(hn::Gt(next, fall), lacks, of_next)};
    }
    HWY_INLINE void join(D d, Tile<D>& tile, int i, const Pivot& of) {
        const Row row = load(d, tile, i);
        r = hn::MulAdd(row.a, of.r, row.r), before = hn::Mul(row.a, of.before), next = row.c;
        excess = hn::MulAdd(row.a, of.excess, row.excess);
        take_pivot(d);
    }
    /// The same loads, nothing computed.
    HWY_INLINE void move(D d, Tile<D>& tile, int i) {
        before = hn::Xor(hn::Load(d, tile.row(lower, i)), hn::Load(d, tile.row(diag, i))), r = hn::Xor(hn::Load(d, tile.row(upper, i)), hn::Load(d, tile.row(rhs, i)));
    }
    /// What has become next to nothing, once in a while.
    HWY_INLINE void forget(D d) {
        const V nothing = hn::Mul(p, hn::Set(d, PivotRange<T>::nothing));
        before = hn::IfThenZeroElse(hn::Lt(before, nothing), before), excess = hn::IfThenZeroElse(hn::Lt(hn::Abs(excess), nothing), excess);
    }
    /// Whether all lanes did without exchanges. What is not a number shows in r or in the last pivot.
    HWY_INLINE bool dominant(D d) const {
        const auto range = hn::And(hn::Ge(least, hn::Zero(d)), hn::Le(most, hn::Set(d, PivotRange<T>::most)));
        return hn::AllTrue(d, hn::And(range, hn::IsFinite(hn::Add(p, r))));
    }

private:
    struct Row {
        V a, c, r, excess;
    };
    HWY_INLINE Row load(D d, Tile<D>& tile, int i) const {
        const V opposite = hn::Xor(flip, hn::SignBit(d));
        const V a = hn::Xor(hn::Load(d, tile.row(lower, i)), opposite), c = hn::Xor(hn::Load(d, tile.row(upper, i)), opposite);
        return {a, c, hn::Xor(hn::Load(d, tile.row(rhs, i)), flip), hn::Sub(hn::Sub(hn::Xor(hn::Load(d, tile.row(diag, i)), flip), a), c)};
    }
    HWY_INLINE void take_pivot(D d) {
        fall = hn::Add(excess, before), p = hn::Add(fall, next);
        const V lacks = hn::MulAdd(p, hn::Set(d, static_cast<T>(dominance_slack)), hn::Sub(excess, hn::Set(d, PivotRange<T>::least)));
        least = hn::Min(hn::Min(least, before), hn::Min(next, lacks)), most = hn::Max(most, p);
    }
};

/// A sum of parts, and what its roundings have lost.
template <class V>
struct Gathered {
    V sum, lost;

    template <class D>
    HWY_INLINE void start(D d) { sum = lost = hn::Zero(d); }
    /// D. E. Knuth's exact sum of two numbers.
    HWY_INLINE void add(V part) {
        const V all = hn::Add(sum, part), of_part = hn::Sub(all, sum);
        lost = hn::Add(lost, hn::Add(hn::Sub(sum, hn::Sub(all, of_part)), hn::Sub(part, of_part)));
        sum = all;
    }
};

template <class D, Work work = Work::solve>
struct DominantReduce {
    using V = hn::Vec<D>;
    DominantPending<D> pending;
    V of_next;                   ///< C
    V turned, lost;              ///< C at the tile's first row, and what its roundings have lost
    V before, r, excess;         ///< what the rows of a tile add to B, Q, f
    Gathered<V> befores, rs, excesses;
    V edge;                      ///< -a_s

    HWY_INLINE void start(D d, Tile<D>& tile) {
        pending.start(d, tile);
        edge = pending.before;
        befores.start(d), rs.start(d), excesses.start(d);
        before = r = excess = lost = hn::Zero(d), of_next = turned = hn::Set(d, hn::TFromD<D>(1));
    }
    HWY_INLINE void next_tile(D d) {
        gather(d);
        pending.forget(d);
    }
    /// A tile at a time: a rounding of the whole sum with every row would be some 20 in a chunk where x is rough. C too is what B and f leave of it, unless little is left.
    HWY_INLINE void gather(D d) {
        const V taken = hn::Add(before, excess), left = hn::Sub(turned, taken), of_sums = hn::Add(lost, hn::Sub(hn::Sub(turned, left), taken)), all = hn::Add(left, of_sums);
        const auto most = hn::Gt(hn::Add(of_next, of_next), turned);
        lost = hn::IfThenElseZero(most, hn::Sub(of_sums, hn::Sub(all, left))), of_next = turned = hn::IfThenElse(most, all, of_next);
        befores.add(before), rs.add(r), excesses.add(excess);
        before = r = excess = hn::Zero(d);
    }

    HWY_INLINE void step(D d, Tile<D>& tile, int i) {
        if constexpr (work != Work::solve) return pending.move(d, tile, i);
        const auto pivot = pending.pivot(d);
        before = hn::MulAdd(of_next, pivot.before, before), r = hn::MulAdd(of_next, pivot.r, r), excess = hn::MulAdd(of_next, pivot.excess, excess);
        of_next = hn::Mul(of_next, pivot.next);
        pending.join(d, tile, i, pivot);
    }
};

template <class D, Work work = Work::solve>
struct DominantFinish {
    using T = hn::TFromD<D>;
    using V = hn::Vec<D>;
    static constexpr int lanes = Tile<D>::lanes, words = 2;
    static constexpr bool solves = work == Work::solve;
    DominantPending<D> pending;
    V before;  ///< x[s-1]
    V near;    ///< x of the row above which the next one is found
    V lost;    ///< what its roundings have lost
    V size;

    HWY_INLINE void start(D d, Tile<D>& tile, V x_before) {
        pending.start(d, tile);
        before = x_before;
    }
    HWY_INLINE void next_tile(D d) { pending.forget(d); }

    /// w and v of x[i] = v + w x[i+1], or of x[i] = x[i+1] + (v + w x[i+1]) where w is below zero, go to `pivot_row`.
    HWY_INLINE void step(D d, Tile<D>& tile, int i, T* HWY_RESTRICT pivot_row) {
        if constexpr (work != Work::solve) {
            pending.move(d, tile, i);
            hn::Store(pending.before, d, pivot_row), hn::Store(pending.r, d, pivot_row + lanes);
            return;
        }
        const auto pivot = pending.pivot(d);
        hn::Store(pivot.w, d, pivot_row), hn::Store(hn::MulAdd(pivot.before, before, pivot.r), d, pivot_row + lanes);
        pending.join(d, tile, i, pivot);
    }

    HWY_INLINE bool fit(D d) const { return !solves || pending.dominant(d); }
    /// At most twice the largest entry of the chunk.
    HWY_INLINE V largest() const { return pending.most; }

    /// What is left of the chunk's last equation with x[e], x[e+1] known.
    HWY_INLINE V left(V last, V after) const {
        return hn::NegMulAdd(pending.p, last, hn::MulAdd(pending.before, before, hn::MulAdd(pending.next, after, pending.r)));
    }
    HWY_INLINE void turn(V last, V after) {
        near = last, lost = hn::Xor(last, last);
        size = hn::Max(hn::Abs(last), hn::Max(hn::Abs(after), hn::Abs(before)));
    }
    HWY_INLINE V first() const { return hn::Add(near, lost); }
    HWY_INLINE V substitute(D d, const T* HWY_RESTRICT pivot_row) {
        if constexpr (work != Work::solve) return hn::Xor(hn::Load(d, pivot_row), hn::Load(d, pivot_row + lanes));
        // With what the sum loses: where x of hundreds of rows is one and the same but for little, all of their roundings would be in x[s].
        const V w = hn::Load(d, pivot_row);
        const auto falls = hn::Lt(w, hn::Zero(d));
        const V from = hn::IfThenElseZero(falls, near), part = hn::MulAdd(w, near, hn::Load(d, pivot_row + lanes)), all = hn::Add(from, part);
        lost = hn::Add(hn::MulAdd(w, lost, hn::IfThenElseZero(falls, lost)), hn::Sub(part, hn::Sub(all, from)));
        near = all;
        const V x = hn::Add(near, lost);
        size = of_larger_magnitude(d, size, x);
        return x;
    }
};

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
