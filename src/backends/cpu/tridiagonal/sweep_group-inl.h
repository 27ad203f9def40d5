// SPDX-License-Identifier: BSD-3-Clause
// One group of stretches, lanes = stretches: elimination runs ahead, substitution follows one block behind it, tile by tile.
//
// Equation   a_i x[i-1] + b_i x[i] + c_i x[i+1] = r_i
// Arrays     a, b, c, r (read once), x (written once; may be r): lane l's row i at start + l length + i
// Work       per step one tile of elimination of block k+1 and one of substitution of block k: independent chains
// Words      5 per row and 2 (left + right) / length more for halos; c', d' of two blocks and a halo stay in the ring (L2)
// Numerics   a block is stored once: its largest |c'| ≤ growth, c' and d' are finite, and the product of |c'| over the halo ahead
//            is ≤ close in every lane. Error bounds per block, combined here into one per stretch
// Source     docs/algorithms/certified.md
#include <cmath>
#include <limits>

#include "backends/cpu/tridiagonal/sweep_job.hpp"
#include "backends/cpu/tridiagonal/sweep_tiles-inl.h"

#if defined(TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_SWEEP_GROUP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_SWEEP_GROUP_INL_H_
#undef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_SWEEP_GROUP_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_SWEEP_GROUP_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {

/// What is known of one block in one vector of lanes once elimination (first three) and substitution have passed.
template <class D>
struct BlockSums {
    hn::Vec<D> decay, end_sum, rounding;  ///< rounding: relative, per row, 24 u max(1, largest |c'|)
    hn::Vec<D> truncation;                ///< bound on prod |c'| from any kept row to the halo's end
    hn::Vec<D> halo_sum;                  ///< backward sum over the halo, times the bound on prod |c'| over kept rows
    hn::Vec<D> back_sum, largest_x;       ///< the largest backward sum over kept rows alone
    hn::Vec<D> beyond;                    ///< x of the row after the block as its own substitution had it
};

/// Error bounds of the blocks of one vector of lanes, from first to last: docs/algorithms/certified.md, "One stretch".
/// Three kinds of defect are carried along: own, those for bounds on |x| of 1 (unit), those of a defect 1 at the start.
template <class D>
struct BoundChain {
    using V = hn::Vec<D>;
    V own, unit, from_left;                            ///< from blocks before the last one, arriving at this one
    V last, last_unit, last_sum;                       ///< rounding and end_sum of the block before this one
    V arriving;                                        ///< by how much the left halo's own sum enlarges from_left beyond the first block
    V error, per_unit, error_from_left, excess, truncation, relative, relative_from_left, max;

    HWY_INLINE void start(D d, V left_sum) {
        arriving = hn::Max(left_sum, hn::Set(d, hn::TFromD<D>(1)));
        own = unit = last = last_unit = last_sum = error = per_unit = error_from_left = hn::Zero(d);
        excess = truncation = relative = relative_from_left = max = hn::Zero(d);
        from_left = hn::Set(d, hn::TFromD<D>(1));
    }

    /// Block `b`, followed by `next`, whose largest_x is `beyond` (0 where it is not known: what it adds is left out then).
    HWY_INLINE void add(D d, const BlockSums<D>& b, const BlockSums<D>& next, V beyond) {
        using T = hn::TFromD<D>;
        const V here_x = hn::Mul(hn::Set(d, T(1.5)), b.largest_x), next_x = hn::Mul(hn::Set(d, T(1.5)), beyond);
        const V rounding = hn::Mul(b.rounding, hn::Max(here_x, next_x)), there = hn::Mul(next.rounding, next_x);
        const V next_own = hn::Mul(b.decay, hn::MulAdd(last_sum, last, own));
        const V next_unit = hn::Mul(b.decay, hn::MulAdd(last_sum, last_unit, unit));
        const V next_left = hn::Mul(b.decay, hn::Mul(from_left, arriving));
        arriving = hn::Set(d, T(1));

        const V cut = hn::Mul(b.truncation, next_x);
        const V block_error = hn::MulAdd(b.back_sum, hn::Add(hn::Max(rounding, last), own),
                                         hn::MulAdd(b.halo_sum, hn::Add(hn::Max(there, rounding), next_own), cut));
        const V block_unit = hn::MulAdd(b.back_sum, hn::Add(hn::Max(b.rounding, last_unit), unit),
                                        hn::MulAdd(b.halo_sum, hn::Add(hn::Max(next.rounding, b.rounding), next_unit), b.truncation));
        const V block_left = hn::MulAdd(b.back_sum, from_left, hn::Mul(b.halo_sum, next_left));
        const V scale = hn::Max(b.largest_x, hn::Set(d, std::numeric_limits<T>::min()));
        error = hn::Max(error, block_error), per_unit = hn::Max(per_unit, block_unit);
        error_from_left = hn::Max(error_from_left, block_left);
        excess = hn::Max(excess, hn::NegMulAdd(hn::Set(d, T(0.5)), b.largest_x, block_error));
        truncation = hn::Max(truncation, b.truncation);
        relative = hn::Max(relative, hn::Div(cut, scale));
        relative_from_left = hn::Max(relative_from_left, hn::Div(block_left, scale));
        max = hn::Max(max, b.largest_x);
        own = next_own, unit = next_unit, from_left = next_left;
        last = rounding, last_unit = b.rounding, last_sum = b.end_sum;
    }
};

/// work: where it is not all, halos have job.moved_halo rows, and nothing is reported.
template <class D, Work work = Work::solve>
struct GroupSweep {
    using T = hn::TFromD<D>;
    using V = hn::Vec<D>;
    static constexpr bool solves = work == Work::solve;
    static constexpr int vectors = vectors_of<D>, n = static_cast<int>(lanes_of<D>), lanes = vectors * n;

    const D d;
    SweepJob<T>& job;
    const std::int64_t group, length, tiles;
    T *const ring, *const edges;
    std::int64_t ahead = 0;         ///< tiles of the stretch that elimination has passed; negative before it
    std::int64_t turned = 0;        ///< tiles of the stretch that are in a stage or were
    int current = 0;                ///< the stage that is eliminated next
    Stage<T> stage[2];
    TilePlaces places;              ///< of the tiles of the ring
    TileInputs<T> inputs;
    Forward<D, work> forward[vectors];
    Backward<D, work> backward[vectors];
    BlockSums<D> sums[2][vectors];  ///< of blocks k (at k & 1) and k+1
    BlockSums<D> previous[vectors]; ///< of the block completed last
    BoundChain<D> chain[vectors];
    V left_decay[vectors], left_rounding[vectors], left_c[vectors], left_d[vectors];
    V first_max[vectors], first_x[vectors], jump[vectors];

    GroupSweep(D d_, SweepJob<T>& job_, std::int64_t group_, T* scratch)
        : d(d_), job(job_), group(group_), length(job_.cut.length_in(group_)), tiles(length / lanes), ring(scratch),
          edges(scratch + job_.sizes.ring_tiles * job_.sizes.tile),
          places(reinterpret_cast<std::int32_t*>(edges + 2 * job_.sizes.edges), job_.sizes.ring_tiles) {}

    T* slot(std::int64_t tiles_back) const { return ring + places[tiles_back] * job.sizes.tile; }
    void read_edges(int side) {
        for (int k = 0; k < 4; ++k) {
            inputs.p[k] = edges + side * job.sizes.edges + k * lanes * job.sizes.edge_stride;
            inputs.stride[k] = job.sizes.edge_stride, inputs.step[k] = lanes;
        }
    }
    void read_stretches() {
        for (int k = 0; k < 4; ++k) {
            const std::int64_t step = job.arrays.step[k];
            inputs.p[k] = job.arrays.data[k] + step * job.cut.group_start(group);
            inputs.stride[k] = step * length, inputs.step[k] = step * lanes;
        }
    }

    /// The tile that is eliminated next is in stage[0]; the one after it is turned on the way.
    HWY_INLINE void load(int array) { load_stage(d, inputs, array, stage[1 - current]); }

    void loaded() {
        inputs.next();
        ++turned;
        if (turned == 0) read_stretches();
        if (turned == tiles) read_edges(1);
    }

    /// One tile of elimination, and where `also` one of substitution: tile `behind` of the stretches.
    template <bool also, Store how>
    HWY_INLINE void step(std::int64_t behind) {
        T* const to = ring + places.take() * job.sizes.tile;
        const T* const from = also ? slot(ahead - behind) : nullptr;
        if (also) places.release(ahead - behind);
        const Stage<T>& rows = stage[current];
        Forward<D, work> f[vectors];    // copies, which stay in registers
        Backward<D, work> b[vectors];
        alignas(64) T out[lanes * lanes];
        LinesAhead<T> lines(inputs, job.ask_tiles, 2);
        for (int v = 0; v < vectors; ++v) {
            f[v] = forward[v];
            f[v].largest_sum = hn::Zero(d);
            if constexpr (also) {
                b[v] = backward[v];
                b[v].tile_sum = hn::Load(d, from + 2 * lanes * lanes + v * n);
            }
        }
#pragma GCC unroll 4
        for (int array = 0; array < 4; ++array) {
            load(array);
#pragma GCC unroll 16
            for (int i = array * (lanes / 4); i < (array + 1) * (lanes / 4); ++i) {
                forward_row(d, rows, i, f, to);
                lines.next_lane(inputs, job.asking);
                if constexpr (also) backward_row(d, from, lanes - 1 - i, b, out);
            }
        }
        if constexpr (also) {
            turn_tile<lanes, how>(d, out, lanes, job.arrays.x + job.cut.group_start(group) + behind * lanes, length);
            for (int v = 0; v < vectors; ++v) backward[v] = b[v];
        }
        for (int v = 0; v < vectors; ++v) {
            forward[v] = f[v];
            hn::Store(f[v].largest_sum, d, to + 2 * lanes * lanes + v * n);
        }
        loaded();
        current = 1 - current;
        if (++ahead <= 0) places.release(0);  // a halo's rows are not substituted
        places.advance();
    }

    /// Substitution alone.
    template <Store how>
    HWY_NOINLINE void substitute(std::int64_t tile) {
        const T* const from = slot(ahead - tile);
        places.release(ahead - tile);
        Backward<D, work> b[vectors];
        alignas(64) T out[lanes * lanes];
        for (int v = 0; v < vectors; ++v) {
            b[v] = backward[v];
            b[v].tile_sum = hn::Load(d, from + 2 * lanes * lanes + v * n);
        }
#pragma GCC unroll 16
        for (int i = lanes - 1; i >= 0; --i) backward_row(d, from, i, b, out);
        turn_tile<lanes, how>(d, out, lanes, job.arrays.x + job.cut.group_start(group) + tile * lanes, length);
        for (int v = 0; v < vectors; ++v) backward[v] = b[v];
    }

    /// Whether no pivot in the halos was too small.
    template <Store how>
    bool start() {
        job.copy_edges(group, edges);
        ahead = turned = -job.cut.left / lanes;
        if (ahead < 0) read_edges(0);
        else read_stretches();
        current = 1;
        for (int array = 0; array < 4; ++array) load(array);
        current = 0;
        loaded();
        for (auto& f : forward) f.start(d);
        while (ahead < 0) step<false, how>(0);
        bool small = true;
        for (int v = 0; v < vectors; ++v) {
            small &= hn::AllTrue(d, hn::Le(forward[v].largest_c, hn::Set(d, static_cast<T>(job.cut.growth))));
            left_c[v] = forward[v].c, left_d[v] = forward[v].d, jump[v] = hn::Zero(d);
            left_decay[v] = forward[v].decay, left_rounding[v] = rounding_of(forward[v]);
            forward[v].start_block(d);
            chain[v].start(d, forward[v].sum);
        }
        return small;
    }

    /// Relative rounding error per row, in units of the largest |x| nearby.
    V rounding_of(const Forward<D, work>& f) const {
        constexpr T u24 = 12 * std::numeric_limits<T>::epsilon();
        return hn::Mul(hn::Set(d, u24), hn::Max(hn::Set(d, T(1)), f.largest_c));
    }

    /// Elimination has just passed the last row of block k.
    HWY_NOINLINE void pass_end(std::int64_t block) {
        for (int v = 0; v < vectors; ++v) {
            BlockSums<D>& s = sums[block & 1][v];
            s.decay = forward[v].decay, s.end_sum = forward[v].sum;
            s.rounding = rounding_of(forward[v]);
            s.truncation = forward[v].largest_c;  // until the halo is known
            forward[v].start_block(d);
        }
        if (block + 1 < job.cut.blocks_in(group)) {
            save_state(block + 1);
        } else if (group + 1 == job.cut.groups) {
            for (int v = 0; v < vectors; ++v) {
                hn::Store(forward[v].c, d, job.ends + v * n);
                hn::Store(forward[v].d, d, job.ends + lanes + v * n);
            }
        }
    }

    tridiagonal::SweepStop fit(std::int64_t block, bool closed) const {
        bool finite = true, small = true;
        for (int v = 0; v < vectors; ++v) {
            finite &= hn::AllTrue(d, hn::IsFinite(forward[v].d)) && hn::AllTrue(d, hn::IsFinite(sums[block & 1][v].end_sum));
            const V largest = hn::Max(sums[block & 1][v].truncation, forward[v].largest_c);
            small &= hn::AllTrue(d, hn::Le(largest, hn::Set(d, static_cast<T>(job.cut.growth))));
        }
        using tridiagonal::SweepStop;
        return !small ? SweepStop::growth : !finite ? SweepStop::not_finite : !closed ? SweepStop::not_decaying : SweepStop::none;
    }

    /// Substitution through the halo of block k, down to the row after the block.
    void turn_back(std::int64_t block, std::int64_t halo_tiles, const V* product) {
        for (int v = 0; v < vectors; ++v) backward[v].start(d);
        for (std::int64_t back = 1; back <= halo_tiles; ++back) backward_halo_tile(d, slot(back), backward);
        for (int v = 0; v < vectors; ++v) {
            BlockSums<D>& s = sums[block & 1][v];
            // Where all |c'| ≤ 1 these are bounds already; negative ones say that it is not so.
            const auto tame = hn::Le(s.truncation, hn::Set(d, T(1)));
            s.truncation = hn::IfThenElse(tame, product[v], hn::Neg(product[v]));
            s.halo_sum = hn::IfThenElse(tame, backward[v].sum, hn::Neg(backward[v].sum));
            backward[v].sum = hn::Zero(d);
            s.beyond = backward[v].x;
        }
        if (!job.arrays.in_place) return;
        for (int v = 0; v < vectors; ++v) hn::Store(backward[v].x, d, job.repair_of(group, block) + 2 * lanes + v * n);
    }

    void save_state(std::int64_t block) {
        if (!job.arrays.in_place) return;
        T* const to = job.repair_of(group, block);
        for (int v = 0; v < vectors; ++v) {
            hn::Store(forward[v].c, d, to + v * n);
            hn::Store(forward[v].d, d, to + lanes + v * n);
        }
    }

    /// All rows of block k are stored: its own sums are complete, and those of block k-1 can be bounded.
    void complete(std::int64_t block) {
        for (int v = 0; v < vectors; ++v) {
            BlockSums<D>& s = sums[block & 1][v];
            s.back_sum = backward[v].largest_sum, s.largest_x = backward[v].largest_x;
            s.truncation = hn::Max(s.truncation, hn::Neg(hn::Mul(s.truncation, s.back_sum)));
            s.halo_sum = hn::Max(s.halo_sum, hn::Neg(hn::Mul(s.halo_sum, s.back_sum)));
            if (block == 0) {
                first_max[v] = s.largest_x, first_x[v] = backward[v].x;
            } else {
                chain[v].add(d, previous[v], s, s.largest_x);
                const V scale = hn::Max(hn::Max(previous[v].largest_x, s.largest_x), hn::Set(d, std::numeric_limits<T>::min()));
                jump[v] = hn::Max(jump[v], hn::Div(hn::Abs(hn::Sub(previous[v].beyond, backward[v].x)), scale));
            }
            previous[v] = s;
        }
        job.stored[group] = block + 1;
    }

    template <Store how>
    tridiagonal::SweepStop run() {
        using tridiagonal::SweepStop;
        const auto& cut = job.cut;
        const std::int64_t blocks = cut.blocks_in(group);
        std::int64_t behind_first = 0, behind = 0;  // substitution has tiles behind_first … behind-1 of block k-1 to do
        SweepStop why = SweepStop::none;
        std::int64_t block = 0, begin = 0;
        if (!start<how>() && solves) return SweepStop::growth;
        save_state(0);
        for (; block < blocks; ++block) {
            const std::int64_t end = cut.block_start(group, block + 1) / lanes, limit = end + cut.right / lanes;
            V product[vectors];
            for (auto& p : product) p = hn::Set(d, T(1));
            bool closed = false;
            while (!closed && ahead < limit) {
                if (behind > behind_first) step<true, how>(--behind);
                else step<false, how>(0);
                if (ahead > end) closed = solves ? closes(d, slot(1), product, static_cast<T>(cut.close)) : (ahead - end) * lanes >= job.moved_halo;
                else if (ahead == end) pass_end(block);
            }
            while (behind > behind_first) substitute<how>(--behind);
            if (block > 0) complete(block - 1);
            if constexpr (solves) why = fit(block, closed);
            if (why != SweepStop::none || job.stop.load(std::memory_order_relaxed) != 0) break;
            turn_back(block, ahead - end, product);
            behind_first = begin, behind = end, begin = end;
        }
        if (block < blocks) return why;
        while (behind > behind_first) substitute<how>(--behind);
        complete(blocks - 1);
        return why;
    }

    /// After run() has gone through.
    void report() {
        using tridiagonal::StretchBound;
        T* const out = edges;  // no longer needed
        for (int v = 0; v < vectors; ++v) {
            BlockSums<D> halo{};
            halo.rounding = rounding_of(forward[v]);
            const BlockSums<D>& s = previous[v];
            // Per unit of |x| after the stretch: rounding of the last block's rows and of the halo's, and truncation.
            const V right = hn::MulAdd(s.back_sum, s.rounding, hn::MulAdd(s.halo_sum, hn::Add(s.rounding, halo.rounding), s.truncation));
            chain[v].add(d, s, halo, hn::Zero(d));
            const V values[] = {chain[v].error, chain[v].per_unit, chain[v].error_from_left, right, chain[v].excess,
                                left_decay[v], left_rounding[v], chain[v].own, chain[v].unit, chain[v].from_left, s.end_sum, chain[v].last, s.rounding,
                                chain[v].truncation, chain[v].relative, chain[v].relative_from_left,
                                hn::Div(s.truncation, hn::Max(s.largest_x, hn::Set(d, std::numeric_limits<T>::min()))),
                                first_max[v], s.largest_x, chain[v].max, jump[v], first_x[v],
                                hn::NegMulAdd(left_c[v], first_x[v], left_d[v]), s.beyond};
            for (const V& value : values) hn::Store(value, d, out + (&value - values) * lanes + v * n);
        }
        for (int lane = 0; lane < lanes; ++lane) {
            StretchBound& bound = job.bounds[group * lanes + lane];
            static_assert(sizeof(StretchBound) == 25 * sizeof(double));
            for (int what = 0; what < 24; ++what) (&bound.error)[what] = static_cast<double>(out[what * lanes + lane]);
            bound.last_x = static_cast<double>(job.arrays.x[job.cut.start(group * lanes + lane) + length - 1]);
        }
    }
};

template <class T, Work work = Work::solve>
void sweep_group(SweepJob<T>& job, std::int64_t group, T* scratch) {
    const hn::ScalableTag<T> d;
    GroupSweep<hn::ScalableTag<T>, work> sweep(d, job, group, scratch);
    const tridiagonal::SweepStop why = job.cut.stream ? sweep.template run<Store::stream>() : sweep.template run<Store::regular>();
    if (job.cut.stream) hwy::FlushStream();
    if constexpr (work != Work::solve) return;
    if (why != tridiagonal::SweepStop::none) job.stop_at(why, job.cut.group_start(group) + job.cut.block_start(group, job.stored[group]));
    if (why != tridiagonal::SweepStop::none || job.stored[group] < job.cut.blocks_in(group)) return;
    sweep.report();
}

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
