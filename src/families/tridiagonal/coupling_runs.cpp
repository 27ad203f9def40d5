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
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "families/tridiagonal/coupling_runs.cpp"
#include "hwy/foreach_target.h"
#include "families/tridiagonal/coupling_join-inl.h"
#include "families/tridiagonal/coupling_lanes-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trifold::tridiagonal::HWY_NAMESPACE {

// Chunks ahead whose rows are asked for: of so many short streams the processor foresees nothing.
constexpr std::int64_t ahead = 8;

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
