// SPDX-License-Identifier: BSD-3-Clause
// Runs of chunks, reduced to two rows each and finished from their ends.
//
// Equation   two rows per chunk in x[last before], x[first], x[last], x[first after] (InterfaceRow). Two carried rows and the two of the next chunk lose x[last] and x[first], which are in no others, with the largest entry
//            of the column as pivot, until two rows in the ends of the run are left
// Arrays     rows, x and right-hand sides where they lie: lane k reads a run of its own, in pairs of numbers
// Writes     reduced: two rows per run. Finished: x. What is left of rows only where it is asked. How rows were subtracted is computed again, for one vector of runs, in the second-level cache: it is twice what the rows are
// Work       per chunk and lane: reduced 2 divisions, 33 products, some 60 choices; finished besides 13 products, and 8 (corrected: 16) for what is left
// Bound      choices and products, where a thread's rows stay in its cache
// Numerics   products are rounded before they are subtracted, so that all instruction sets have the same bits
// Source     docs/algorithms/two_pass.md, docs/decisions/0091-coupling-in-lanes.md
#include "families/tridiagonal/coupling_runs.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "families/tridiagonal/coupling_runs.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trifold::tridiagonal::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<double>;
using V = hn::Vec<D>;
using M = hn::Mask<D>;
constexpr int lanes = static_cast<int>(hn::MaxLanes(D()));

// Chunks ahead whose rows are asked for: of so many short streams the processor foresees nothing.
constexpr std::int64_t ahead = 8;

/// The pairs at[0], at[2], … as blocks of a vector.
template <class Of>
HWY_INLINE hn::Vec<Of> load_blocks(Of d, const double* const* at, std::int64_t offset) {
    if constexpr (hn::MaxLanes(Of()) == 2) {
        return hn::LoadU(d, at[0] + offset);
    } else {
        const hn::Half<Of> half;
        return hn::Combine(d, load_blocks(half, at + hn::MaxLanes(Of()) / 2, offset), load_blocks(half, at, offset));
    }
}

template <class Of>
HWY_INLINE void store_blocks(Of d, hn::Vec<Of> v, double* const* at, std::int64_t offset) {
    if constexpr (hn::MaxLanes(Of()) == 2) {
        hn::StoreU(v, d, at[0] + offset);
    } else {
        const hn::Half<Of> half;
        store_blocks(half, hn::LowerHalf(half, v), at, offset);
        store_blocks(half, hn::UpperHalf(half, v), at + hn::MaxLanes(Of()) / 2, offset);
    }
}

struct Pair {
    V first, second;
};

/// Two numbers of every lane, from at[lane] + offset on.
HWY_INLINE Pair load_pairs(const double* const* at, std::int64_t offset) {
    const D d;
    const V even = load_blocks(d, at, offset), odd = load_blocks(d, at + 1, offset);
    return {hn::InterleaveLower(d, even, odd), hn::InterleaveUpper(d, even, odd)};
}

HWY_INLINE void store_pairs(const Pair& pair, double* const* at, std::int64_t offset) {
    const D d;
    store_blocks(d, hn::InterleaveLower(d, pair.first, pair.second), at, offset);
    store_blocks(d, hn::InterleaveUpper(d, pair.first, pair.second), at + 1, offset);
}

HWY_INLINE V minus(V from, V a, V b) { return hn::Sub(from, hn::Mul(a, b)); }

/// A vector of runs. whole: of one length, and as many as there are lanes. Else lanes whose run has ended keep what they have, and those without a run of their own go with the last one and store nothing.
template <bool whole>
class Lanes {
public:
    explicit Lanes(ChunkRuns runs) : live_(static_cast<int>(runs.count)) {
        for (int k = 0; k < lanes; ++k) {
            const ChunkRun& run = runs.run[std::min(k, live_ - 1)];
            rows_[k] = reinterpret_cast<const double*>(run.rows), first_[k] = run.first, chunks_[k] = run.chunks;
            longest = std::max(longest, run.chunks);
        }
    }

    std::int64_t longest = 0;

    int live() const { return live_; }
    std::int64_t first(int lane) const { return first_[lane]; }
    std::int64_t chunks(int lane) const { return chunks_[lane]; }
    std::int64_t chunk_of(int lane, std::int64_t chunk) const { return whole ? chunk : std::min(chunk, chunks_[lane] - 1); }

    M active(std::int64_t chunk) const {
        const D d;
        HWY_ALIGN double active[lanes];
        for (int k = 0; k < lanes; ++k) active[k] = chunk < chunks_[k] ? 1 : 0;
        return hn::Gt(hn::Load(d, active), hn::Zero(d));
    }

    /// The ten numbers of a chunk's rows, from `offset` on.
    Pair rows(std::int64_t chunk, std::int64_t offset) const {
        if constexpr (whole) return load_pairs(rows_, 10 * chunk + offset);
        const double* at[lanes];
        for (int k = 0; k < lanes; ++k) at[k] = rows_[k] + 10 * chunk_of(k, chunk);
        return load_pairs(at, offset);
    }

    void ask_for(std::int64_t chunk) const {
        for (int k = 0; k < lanes; ++k) __builtin_prefetch(rows_[k] + 10 * chunk), __builtin_prefetch(rows_[k] + 10 * chunk + 8);
    }

    /// Two numbers of every lane in an array of two per chunk.
    Pair load(const double* array, std::int64_t chunk, std::int64_t offset) const {
        const double* at[lanes];
        // A run of one chunk has nothing before it where a longer one beside it is read.
        for (int k = 0; k < lanes; ++k) at[k] = array + (whole ? 2 * (first_[k] + chunk) + offset : std::max<std::int64_t>(2 * (first_[k] + chunk_of(k, chunk)) + offset, 0));
        return load_pairs(at, 0);
    }

    void store(const Pair& pair, double* array, std::int64_t chunk, std::int64_t offset) const {
        if constexpr (whole) {
            double* at[lanes];
            for (int k = 0; k < lanes; ++k) at[k] = array + 2 * (first_[k] + chunk);
            store_pairs(pair, at, offset);
        } else {
            const D d;
            HWY_ALIGN double first[lanes], second[lanes];
            hn::Store(pair.first, d, first), hn::Store(pair.second, d, second);
            for (int k = 0; k < live_; ++k)
                if (chunk < chunks_[k]) {
                    double* const at = array + 2 * (first_[k] + chunk) + offset;
                    at[0] = first[k], at[1] = second[k];
                }
        }
    }

private:
    const double* rows_[lanes];
    std::int64_t first_[lanes], chunks_[lanes];
    int live_;
};

/// Both rows of a chunk.
struct Chunk {
    V c[2][4], right[2];
};

template <bool whole>
HWY_INLINE Chunk chunk_rows(const Lanes<whole>& of, std::int64_t chunk, const double* right) {
    Chunk out;
    const Pair a = of.rows(chunk, 0), b = of.rows(chunk, 2), c = of.rows(chunk, 4), e = of.rows(chunk, 6), f = of.rows(chunk, 8);
    out.c[0][0] = a.first, out.c[0][1] = a.second, out.c[0][2] = b.first, out.c[0][3] = b.second;
    out.c[1][0] = c.second, out.c[1][1] = e.first, out.c[1][2] = e.second, out.c[1][3] = f.first;
    out.right[0] = c.first, out.right[1] = f.second;
    if (right) {
        const Pair instead = of.load(right, chunk, 0);
        out.right[0] = instead.first, out.right[1] = instead.second;
    }
    return out;
}

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

/// right: null, or right-hand sides in place of the rows'. steps: room for run_length of them where they are kept, `again` for other right-hand sides too. Returns whether an unknown has no pivot.
template <bool keeps, bool whole>
HWY_INLINE bool eliminate(const Lanes<whole>& of, const double* right, double* steps, bool again, Carried& carried) {
    const D d;
    M missing = hn::MaskFromVec(hn::Zero(d));
    carried.start(chunk_rows(of, 0, right));
    for (std::int64_t chunk = 1; chunk < of.longest; ++chunk) {
        of.ask_for(chunk + ahead);
        const Carried before = carried;
        M lacking[2];
        const Step step = carried.join(chunk_rows(of, chunk, right), lacking);
        if constexpr (keeps) step.store(steps + (chunk - 1) * Step::numbers * lanes, again);
        M none = hn::Or(lacking[0], lacking[1]);
        if constexpr (!whole) {
            const M active = of.active(chunk);
            carried.keep(active, before);
            none = hn::And(active, none);
        }
        missing = hn::Or(missing, none);
    }
    return !hn::AllFalse(d, missing);
}

/// The first unknown without a pivot of one run.
HWY_NOINLINE std::int64_t first_missing(const ChunkRun& run) {
    const D d;
    const Lanes<false> of({&run, 1});
    Carried carried;
    carried.start(chunk_rows(of, 0, nullptr));
    for (std::int64_t chunk = 1; chunk < run.chunks; ++chunk) {
        M lacking[2];
        carried.join(chunk_rows(of, chunk, nullptr), lacking);
        for (int k = 0; k < 2; ++k)
            if (!hn::AllFalse(d, lacking[k])) return 2 * (run.first + chunk) - 1 + k;
    }
    return -1;
}

template <bool whole>
HWY_NOINLINE bool reduce_some(ChunkRuns runs, InterfaceRow* out) {
    const D d;
    const Lanes<whole> of(runs);
    Carried carried;
    const bool missing = eliminate<false>(of, nullptr, nullptr, false, carried);
    HWY_ALIGN double value[5][lanes];
    for (int k = 0; k < 2; ++k) {
        hn::Store(carried.outer[k][0], d, value[0]), hn::Store(carried.outer[k][1], d, value[1]);
        hn::Store(carried.next[k][0], d, value[2]), hn::Store(carried.next[k][1], d, value[3]), hn::Store(carried.right[k], d, value[4]);
        for (int lane = 0; lane < of.live(); ++lane) {
            InterfaceRow& row = out[2 * lane + k];
            for (int c = 0; c < 4; ++c) row.coefficient[c] = value[c][lane];
            row.rhs = value[4][lane];
        }
    }
    return missing;
}

// Lanes of one length, and as many as there are.
bool whole(ChunkRuns runs) {
    return runs.count == lanes && std::all_of(runs.run, runs.run + lanes, [&](const ChunkRun& run) { return run.chunks == runs.run[0].chunks; });
}

std::int64_t reduce_set(ChunkRuns runs, InterfaceRow* out) {
    const bool missing = whole(runs) ? reduce_some<true>(runs, out) : reduce_some<false>(runs, out);
    if (missing)
        for (std::int64_t k = 0; k < runs.count; ++k)
            if (const std::int64_t at = first_missing(runs.run[k]); at >= 0) return at;
    return -1;
}

/// Ends of the runs of a vector.
template <bool whole>
struct RunEnds {
    Pair first, last;  ///< x[last before], x[first]; x[last], x[first after]

    HWY_INLINE RunEnds(const Lanes<whole>& of, const double* ends) {
        const double* at[lanes];
        for (int k = 0; k < lanes; ++k) at[k] = ends + 2 * std::min(k, of.live() - 1);
        first = load_pairs(at, -1), last = load_pairs(at, 1);
    }
};

/// What is left, lane by lane.
struct LanesLeft {
    V most;
    M numbers;

    template <bool whole>
    HWY_INLINE void look(V left, V weight, M active) {
        const D d;
        const V size = whole ? hn::Abs(left) : hn::IfThenElseZero(active, hn::Abs(left)), infinite = hn::Set(d, std::numeric_limits<double>::infinity());
        const M finite = hn::And(hn::Lt(size, infinite), hn::Lt(weight, infinite));
        numbers = hn::And(numbers, whole ? finite : hn::Or(hn::Not(active), finite));
        // Rarely more than there was: then it is divided.
        const M more = hn::Gt(size, hn::Mul(weight, hn::Mul(most, hn::Set(d, 1 - 0x1p-50))));
        if (hn::AllFalse(d, more)) return;
        const V ratio = hn::IfThenElseZero(more, hn::Div(size, weight));
        most = hn::IfThenElse(hn::Lt(most, ratio), ratio, most);
    }
};

/// Takes a chunk's rows × value from its right-hand sides; weight: the sum of |coefficient × size|.
template <bool whole>
HWY_INLINE Pair take(const Chunk& chunk, const V (&value)[4], const V (&size)[4], LanesLeft& seen, M active) {
    const D d;
    Pair left;
    for (int k = 0; k < 2; ++k) {
        V rest = chunk.right[k], weight = hn::Zero(d);
        for (int c = 0; c < 4; ++c) rest = minus(rest, chunk.c[k][c], value[c]), weight = hn::Add(weight, hn::Abs(hn::Mul(chunk.c[k][c], size[c])));
        seen.template look<whole>(rest, weight, active);
        (k == 0 ? left.first : left.second) = rest;
    }
    return left;
}

template <Also also, bool whole>
HWY_NOINLINE RowsLeft finish_some(ChunkRuns runs, const RunArrays& to) {
    const D d;
    HWY_ALIGN double steps[run_length * Step::numbers * lanes];
    const Lanes<whole> of(runs);
    Carried carried;
    const bool again = also == Also::take && to.again;
    eliminate<true>(of, to.right, steps, again, carried);
    HWY_ALIGN double left_here[run_length * 2 * lanes];

    const RunEnds<whole> ends(of, to.ends), ends_of_x(of, also == Also::correct ? to.ends_of_x : to.ends);
    const Pair outer = ends.first;
    Pair next = ends.last, next_size = ends_of_x.last;
    HWY_ALIGN double own[4][lanes];  // x[first], x[last] of every run, and of the x that is corrected
    hn::Store(outer.second, d, own[0]), hn::Store(next.first, d, own[1]);
    hn::Store(ends_of_x.first.second, d, own[2]), hn::Store(next_size.first, d, own[3]);
    for (int k = 0; k < of.live(); ++k)
        for (int end = 0; end < 2; ++end) {
            const std::int64_t at = 2 * of.first(k) + end * (2 * of.chunks(k) - 1);
            to.x[at] = also == Also::correct ? own[2 + end][k] + own[end][k] : own[end][k];
        }

    const M all = hn::Eq(hn::Zero(d), hn::Zero(d));
    LanesLeft seen = {hn::Zero(d), all};
    for (std::int64_t chunk = of.longest - 1; chunk >= 0; --chunk) {
        const M active = whole ? all : of.active(chunk);
        Pair here = outer, size = ends_of_x.first;  // x[last before], x[first] of this chunk
        if (chunk > 0) {
            const double* const step = steps + (chunk - 1) * Step::numbers * lanes;
            const auto at = [&](int k) HWY_ATTR { return hn::Load(d, step + k * lanes); };
            V first = minus(minus(at(11), at(9), outer.first), at(10), outer.second);
            first = hn::Mul(minus(minus(first, at(8), next.second), at(7), next.first), at(12));
            V last = minus(minus(at(5), at(3), outer.first), at(4), outer.second);
            last = minus(minus(last, at(2), next.second), at(1), next.first);
            last = hn::Mul(minus(last, at(0), first), at(6));
            here = {last, first};
            if constexpr (also == Also::correct) {
                size = of.load(to.x, chunk, -1);
                of.store({hn::Add(size.first, last), hn::Add(size.second, first)}, to.x, chunk, -1);
            } else {
                of.store(here, to.x, chunk, -1);
            }
        }
        if constexpr (also != Also::nothing) {
            const Chunk rows = chunk_rows(of, chunk, to.right);
            const V value[4] = {here.first, here.second, next.first, next.second};
            if constexpr (also == Also::correct) {
                const V sizes[4] = {size.first, size.second, next_size.first, next_size.second};
                take<whole>(rows, value, sizes, seen, active);
            } else {
                const Pair left = take<whole>(rows, value, value, seen, active);
                if (again) {
                    of.store(left, to.left, chunk, 0);
                    hn::Store(left.first, d, left_here + 2 * chunk * lanes), hn::Store(left.second, d, left_here + (2 * chunk + 1) * lanes);
                }
            }
        }
        const auto choose = [&](Pair& was, const Pair& now) HWY_ATTR {
            was = whole ? now : Pair{hn::IfThenElse(active, now.first, was.first), hn::IfThenElse(active, now.second, was.second)};
        };
        choose(next, here);
        if constexpr (also == Also::correct) choose(next_size, size);
    }

    if (again) {
        V right[2] = {hn::Load(d, left_here), hn::Load(d, left_here + lanes)};
        for (std::int64_t chunk = 1; chunk < of.longest; ++chunk) {
            const V before[2] = {right[0], right[1]}, joins[2] = {hn::Load(d, left_here + 2 * chunk * lanes), hn::Load(d, left_here + (2 * chunk + 1) * lanes)};
            Step::subtract_again(steps + (chunk - 1) * Step::numbers * lanes, right, joins);
            if constexpr (!whole)
                for (int k = 0; k < 2; ++k) right[k] = hn::IfThenElse(of.active(chunk), right[k], before[k]);
        }
        HWY_ALIGN double value[2][lanes];
        hn::Store(right[0], d, value[0]), hn::Store(right[1], d, value[1]);
        for (int lane = 0; lane < of.live(); ++lane)
            for (int k = 0; k < 2; ++k) to.again[2 * lane + k].rhs = value[k][lane];
    }

    HWY_ALIGN double most[lanes];
    hn::Store(seen.most, d, most);
    return {*std::max_element(most, most + lanes), hn::AllTrue(d, seen.numbers)};
}

template <Also also>
RowsLeft finish_as(ChunkRuns runs, const RunArrays& to) {
    return whole(runs) ? finish_some<also, true>(runs, to) : finish_some<also, false>(runs, to);
}

RowsLeft finish_set(ChunkRuns runs, Also also, const RunArrays& to) {
    if (also == Also::take) return finish_as<Also::take>(runs, to);
    return also == Also::correct ? finish_as<Also::correct>(runs, to) : finish_as<Also::nothing>(runs, to);
}

std::int64_t together() { return lanes; }

}  // namespace trifold::tridiagonal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trifold::tridiagonal {
namespace {

HWY_EXPORT(reduce_set);
HWY_EXPORT(finish_set);
HWY_EXPORT(together);

}  // namespace

std::int64_t runs_together() { return HWY_DYNAMIC_DISPATCH(together)(); }

std::int64_t reduce_runs(ChunkRuns runs, InterfaceRow* out) { return HWY_DYNAMIC_DISPATCH(reduce_set)(runs, out); }

RowsLeft finish_runs(ChunkRuns runs, Also also, const RunArrays& arrays) { return HWY_DYNAMIC_DISPATCH(finish_set)(runs, also, arrays); }

}  // namespace trifold::tridiagonal
#endif
