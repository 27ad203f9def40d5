// SPDX-License-Identifier: BSD-3-Clause
// A chunk joins the two rows that are carried: x[last] and x[first] leave, with the largest entry of the column as pivot. Included once per Highway target.
#include "families/tridiagonal/coupling_lanes-inl.h"
#include "hwy/highway.h"

#if defined(TRIFOLD_FAMILIES_TRIDIAGONAL_COUPLING_JOIN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_FAMILIES_TRIDIAGONAL_COUPLING_JOIN_INL_H_
#undef TRIFOLD_FAMILIES_TRIDIAGONAL_COUPLING_JOIN_INL_H_
#else
#define TRIFOLD_FAMILIES_TRIDIAGONAL_COUPLING_JOIN_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::tridiagonal::HWY_NAMESPACE {

/// Which of three or four rows is the pivot row, by lanes: the first one where none of these says so.
template <int count>
struct Which {
    M is[count];

    HWY_INLINE M first() const {
        M any = is[0];
        for (int k = 1; k < count; ++k) any = hn::Or(any, is[k]);
        return hn::Not(any);
    }

    HWY_INLINE V of(const V (&w)[count + 1]) const {
        V out = w[0];
        for (int k = 0; k < count; ++k) out = hn::IfThenElse(is[k], w[k + 1], out);
        return out;
    }
};

/// Pivot rows of x[last k] and x[first k+1]: what is beside them, right-hand side, 1 / pivot. And how they were subtracted, for other right-hand sides.
struct Step {
    V last_in, last_next[2], last_outer[2], last_right, last_inverse;
    V first_next[2], first_outer[2], first_right, first_inverse;
    V of_others[3], of_carried[2];
    Which<3> best;
    Which<2> second;
    static constexpr int pivot_numbers = 13, numbers = 23;

    HWY_INLINE void store(double* to, bool again) const {
        const D d;
        const V all[numbers] = {last_in, last_next[0], last_next[1], last_outer[0], last_outer[1], last_right, last_inverse, first_next[0], first_next[1], first_outer[0], first_outer[1], first_right, first_inverse,
                                of_others[0], of_others[1], of_others[2], of_carried[0], of_carried[1], hn::VecFromMask(d, best.is[0]), hn::VecFromMask(d, best.is[1]), hn::VecFromMask(d, best.is[2]),
                                hn::VecFromMask(d, second.is[0]), hn::VecFromMask(d, second.is[1])};
        for (int k = 0; k < pivot_numbers; ++k) hn::Store(all[k], d, to + k * lanes);
        if (again)
            for (int k = pivot_numbers; k < numbers; ++k) hn::Store(all[k], d, to + k * lanes);
    }

    /// What becomes of the right-hand sides of two carried rows when a chunk with these two joins.
    static HWY_INLINE void subtract_again(const double* from, V (&right)[2], const V (&chunk)[2]) {
        const D d;
        const auto at = [&](int k) HWY_ATTR { return hn::Load(d, from + (pivot_numbers + k) * lanes); };
        const auto mask = [&](int k) HWY_ATTR { return hn::MaskFromVec(at(k)); };
        const Which<3> best = {{mask(5), mask(6), mask(7)}};
        const Which<2> second = {{mask(8), mask(9)}};
        const V last = best.of({right[0], right[1], chunk[0], chunk[1]});
        const V other[3] = {minus(hn::IfThenElse(best.first(), chunk[1], right[0]), at(0), last), minus(hn::IfThenElse(best.is[0], chunk[1], right[1]), at(1), last),
                            minus(hn::IfThenElse(best.is[1], chunk[1], chunk[0]), at(2), last)};
        const V first = second.of(other);
        right[0] = minus(hn::IfThenElse(second.first(), other[2], other[0]), at(3), first);
        right[1] = minus(hn::IfThenElse(second.is[0], other[2], other[1]), at(4), first);
    }
};

/// Two carried rows, in terms of the chunk that joined last: x[last], x[first after] ("next"); x[last before the run], x[first of the run] ("outer").
struct Carried {
    V next[2][2], outer[2][2], right[2];

    HWY_INLINE void start(const Chunk& chunk) {
        for (int k = 0; k < 2; ++k) {
            outer[k][0] = chunk.c[k][0], outer[k][1] = chunk.c[k][1], next[k][0] = chunk.c[k][2], next[k][1] = chunk.c[k][3];
            right[k] = chunk.right[k];
        }
    }

    /// x[last k] and x[first k+1] leave. missing: lanes in which they have no pivot.
    HWY_INLINE Step join(const Chunk& chunk, M (&missing)[2]) {
        const D d;
        const V zero = hn::Zero(d), one = hn::Set(d, 1);
        Step step;

        // Of four rows (0, 1: carried, which have no `next`; 2, 3: the chunk's, which have no `outer`) the one with the largest entry; 3 takes its place.
        const V in[4] = {next[0][0], next[1][0], chunk.c[0][0], chunk.c[1][0]};
        V size = hn::Abs(in[0]);
        const V size1 = hn::Abs(in[1]), size2 = hn::Abs(in[2]), size3 = hn::Abs(in[3]);
        const M beats1 = hn::Gt(size1, size);
        size = hn::IfThenElse(beats1, size1, size);
        const M beats2 = hn::Gt(size2, size);
        size = hn::IfThenElse(beats2, size2, size);
        const M is3 = hn::Gt(size3, size);
        const M is2 = hn::AndNot(is3, beats2), new_one = hn::Or(beats2, is3), is1 = hn::AndNot(new_one, beats1), is0 = hn::Not(hn::Or(new_one, beats1));
        step.best = {{is1, is2, is3}};

        const V pivot = step.best.of(in);
        const V last_in = step.best.of({next[0][1], next[1][1], chunk.c[0][1], chunk.c[1][1]}), last_right = step.best.of({right[0], right[1], chunk.right[0], chunk.right[1]});
        V last_next[2], last_outer[2];
        for (int k = 0; k < 2; ++k) {
            last_next[k] = hn::IfThenElse(is3, chunk.c[1][2 + k], hn::IfThenElseZero(is2, chunk.c[0][2 + k]));
            last_outer[k] = hn::IfThenZeroElse(new_one, hn::IfThenElse(is1, outer[1][k], outer[0][k]));
        }
        missing[0] = hn::Eq(pivot, zero);
        const V inverse = hn::Div(one, pivot);

        // The three others lose it.
        const V multiplier[3] = {hn::Mul(hn::IfThenElse(is0, in[3], in[0]), inverse), hn::Mul(hn::IfThenElse(is1, in[3], in[1]), inverse), hn::Mul(hn::IfThenElse(is2, in[3], in[2]), inverse)};
        const V other_in[3] = {minus(hn::IfThenElse(is0, chunk.c[1][1], next[0][1]), multiplier[0], last_in), minus(hn::IfThenElse(is1, chunk.c[1][1], next[1][1]), multiplier[1], last_in),
                               minus(hn::IfThenElse(is2, chunk.c[1][1], chunk.c[0][1]), multiplier[2], last_in)};
        const V other_right[3] = {minus(hn::IfThenElse(is0, chunk.right[1], right[0]), multiplier[0], last_right), minus(hn::IfThenElse(is1, chunk.right[1], right[1]), multiplier[1], last_right),
                                  minus(hn::IfThenElse(is2, chunk.right[1], chunk.right[0]), multiplier[2], last_right)};
        V other_next[3][2], other_outer[3][2];
        for (int k = 0; k < 2; ++k) {
            other_next[0][k] = minus(hn::IfThenElseZero(is0, chunk.c[1][2 + k]), multiplier[0], last_next[k]);
            other_next[1][k] = minus(hn::IfThenElseZero(is1, chunk.c[1][2 + k]), multiplier[1], last_next[k]);
            other_next[2][k] = minus(hn::IfThenElse(is2, chunk.c[1][2 + k], chunk.c[0][2 + k]), multiplier[2], last_next[k]);
            other_outer[0][k] = minus(hn::IfThenZeroElse(is0, outer[0][k]), multiplier[0], last_outer[k]);
            other_outer[1][k] = minus(hn::IfThenZeroElse(is1, outer[1][k]), multiplier[1], last_outer[k]);
            other_outer[2][k] = minus(zero, multiplier[2], last_outer[k]);
        }

        // The same among the three; 2 takes its place.
        V size_in = hn::Abs(other_in[0]);
        const V size_in1 = hn::Abs(other_in[1]), size_in2 = hn::Abs(other_in[2]);
        const M larger1 = hn::Gt(size_in1, size_in);
        size_in = hn::IfThenElse(larger1, size_in1, size_in);
        const M second2 = hn::Gt(size_in2, size_in), second1 = hn::AndNot(second2, larger1), second0 = hn::Not(hn::Or(second2, larger1));
        step.second = {{second1, second2}};
        const V second_pivot = step.second.of(other_in), first_right = step.second.of(other_right);
        missing[1] = hn::Eq(second_pivot, zero);
        const V second_inverse = hn::Div(one, second_pivot);
        const V one_more = hn::Mul(hn::IfThenElse(second0, other_in[2], other_in[0]), second_inverse), other_more = hn::Mul(hn::IfThenElse(second1, other_in[2], other_in[1]), second_inverse);
        right[0] = minus(hn::IfThenElse(second0, other_right[2], other_right[0]), one_more, first_right);
        right[1] = minus(hn::IfThenElse(second1, other_right[2], other_right[1]), other_more, first_right);
        for (int k = 0; k < 2; ++k) {
            const V of_next = hn::IfThenElse(second2, other_next[2][k], hn::IfThenElse(second1, other_next[1][k], other_next[0][k]));
            const V of_outer = hn::IfThenElse(second2, other_outer[2][k], hn::IfThenElse(second1, other_outer[1][k], other_outer[0][k]));
            next[0][k] = minus(hn::IfThenElse(second0, other_next[2][k], other_next[0][k]), one_more, of_next);
            next[1][k] = minus(hn::IfThenElse(second1, other_next[2][k], other_next[1][k]), other_more, of_next);
            outer[0][k] = minus(hn::IfThenElse(second0, other_outer[2][k], other_outer[0][k]), one_more, of_outer);
            outer[1][k] = minus(hn::IfThenElse(second1, other_outer[2][k], other_outer[1][k]), other_more, of_outer);
            step.last_next[k] = last_next[k], step.last_outer[k] = last_outer[k];
            step.first_next[k] = of_next, step.first_outer[k] = of_outer;
        }
        for (int k = 0; k < 3; ++k) step.of_others[k] = multiplier[k];
        step.of_carried[0] = one_more, step.of_carried[1] = other_more;
        step.last_in = last_in, step.last_right = last_right, step.last_inverse = inverse;
        step.first_right = first_right, step.first_inverse = second_inverse;
        return step;
    }

    HWY_INLINE void keep(M active, const Carried& before) {
        for (int k = 0; k < 2; ++k) {
            right[k] = hn::IfThenElse(active, right[k], before.right[k]);
            for (int c = 0; c < 2; ++c) next[k][c] = hn::IfThenElse(active, next[k][c], before.next[k][c]), outer[k][c] = hn::IfThenElse(active, outer[k][c], before.outer[k][c]);
        }
    }
};

}  // namespace trifold::tridiagonal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
