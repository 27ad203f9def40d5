// SPDX-License-Identifier: BSD-3-Clause
// One group of stretches of the pivoted sweep: elimination of block k+2, substitution of block k behind it.
//
// Equation   a_i x[i-1] + b_i x[i] + c_i x[i+1] = r_i
// Arrays     a, b, c, r (row i at [i]; lane l's row i at start + l length + i), x: stored, never read; may be r, which then goes to a log
// Scratch    ring: -u1, -u2, -d of the pivot rows x[i] = d - u1 x[i+1] - u2 x[i+2], lanes side by side, of three blocks
// Work       per step one tile of elimination and, in two steps of a tile each, first the halo's substitution, then the block's: the
//            chain of divisions leaves room for it, and for turning the next tile, between its rows
// Words      5 per row, and 2 / blocks more; pivot rows stay in the second-level cache. In place one more is written
// Numerics   partial pivoting among two rows, the pending one and the next, as in gtsv: |multiplier| ≤ 1, entries at most double.
//            A block is substituted from zeros one block further down. Its rows hold to a few roundings; where it meets the next one
//            the equations are off by the difference between the x that one side computed for itself and the x that is there. It is
//            compared with the largest |x| of the two blocks in that lane; the largest one that is not small is reported. What is not
//            finite in x stays so up to the row above the block, where it is looked for.
// Source     docs/algorithms/two_pass.md, "One pass where the matrix forgets"
#include <cmath>
#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"

#include "backends/cpu/simd/turn-inl.h"
#include "backends/cpu/tridiagonal/pivoted_undo.hpp"
#include "backends/cpu/tridiagonal/reduce_tiles-inl.h"

#if defined(TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_PIVOTED_GROUP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_PIVOTED_GROUP_INL_H_
#undef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_PIVOTED_GROUP_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_PIVOTED_GROUP_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {

template <class D, Work work = Work::solve>
struct PendingRow {
    using V = hn::Vec<D>;
    V x0, x1, r;  ///< coefficients of x[i], x[i+1]; right-hand side
    V poison;     ///< 0, or NaN once a coefficient was not finite: sorting by magnitude may drop a NaN

    /// Row i+1 joins, x[i] leaves; its pivot row goes to `slot`.
    HWY_INLINE void step(D d, V a, V b, V c, V right, hn::TFromD<D>* HWY_RESTRICT slot) {
        constexpr std::size_t n = lanes_of<D>;
        if constexpr (work != Work::solve) {
            hn::Store(hn::Xor(a, b), d, slot), hn::Store(hn::Xor(b, c), d, slot + n), hn::Store(hn::Xor(c, right), d, slot + 2 * n);
            if constexpr (work == Work::move_and_wait) x0 = hn::Div(hn::Set(d, hn::TFromD<D>(1.7)), x0);
            return;
        }
        const Sorted<D> sorted = sort_by_magnitude(d, x0, a);
        const auto n_wins = sorted.q_wins;
        poison = hn::MulAdd(hn::Zero(d), x0, hn::MulAdd(hn::Zero(d), a, poison));
        // Two divisions: the multiplier is what the next row waits for.
        const V multiplier = hn::Div(sorted.smaller, sorted.larger), minus = hn::Div(hn::Set(d, hn::TFromD<D>(-1)), sorted.larger);
        const V pivot_x1 = hn::IfThenElse(n_wins, b, x1), pivot_r = hn::IfThenElse(n_wins, right, r);
        hn::Store(hn::Mul(pivot_x1, minus), d, slot);
        hn::Store(hn::Mul(hn::IfThenElseZero(n_wins, c), minus), d, slot + n);
        hn::Store(hn::Mul(pivot_r, minus), d, slot + 2 * n);
        x0 = hn::NegMulAdd(multiplier, pivot_x1, hn::IfThenElse(n_wins, x1, b));
        r = hn::NegMulAdd(multiplier, pivot_r, hn::IfThenElse(n_wins, r, right));
        x1 = hn::IfThenElse(n_wins, hn::Neg(hn::Mul(multiplier, c)), c);
    }
};

/// x[i+1], x[i+2] on the way up.
template <class D, Work work = Work::solve>
struct Substituted {
    hn::Vec<D> near, far;

    HWY_INLINE void step(D d, const hn::TFromD<D>* HWY_RESTRICT slot) {
        constexpr std::size_t n = lanes_of<D>;
        if constexpr (work != Work::solve) {
            far = hn::Xor(hn::Load(d, slot + n), hn::Load(d, slot + 2 * n)), near = hn::Xor(hn::Xor(near, far), hn::Load(d, slot));
            return;
        }
        const hn::Vec<D> rest = hn::MulSub(hn::Load(d, slot + n), far, hn::Load(d, slot + 2 * n));
        far = near;
        near = hn::MulAdd(hn::Load(d, slot), near, rest);
    }
};

template <class D, Work work = Work::solve>
class PivotedGroup {
public:
    using T = hn::TFromD<D>;
    using V = hn::Vec<D>;
    static constexpr int n = static_cast<int>(lanes_of<D>);
    static constexpr bool whole_lines = n * sizeof(T) == 64;
    static constexpr std::int64_t again_tiles = 2;

    PivotedGroup(D d_, PivotedJob<T>& job_, std::int64_t group_, T* ring_)
        : d(d_), job(job_), group(group_), start(job_.cut.start(group_)), length(job_.cut.length()), block(job_.cut.block),
          tiles(block / n), ring(ring_) {
        for (int k = 0; k < 4; ++k) step_[k] = job.arrays.step[k], base[k] = job.arrays.data[k] + step_[k] * start;
    }

    /// keep: x is rhs.
    template <Store how, bool keep>
    HWY_INLINE void run() {
        const std::int64_t blocks = job.cut.blocks;
        pending = {hn::Set(d, T(1)), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
        solved = {hn::Zero(d), hn::Zero(d)};
        last = halo_first = largest = largest_before = hn::Zero(d);
        prepare<keep>(-block);
        for (int k = 0; k < 4; ++k) load(from[k], stride[k], stage[0][k]);
        // After the last halo elimination goes on idly: one block in a hundred, and one kind of step less.
        for (std::int64_t b = -1; b < blocks + 2; ++b) {
            const std::int64_t kept = b - 2, half = tiles / 2;
            for (std::int64_t t = 0; t < tiles; ++t) {
                if (kept < 0) step<0, how, keep>(b, t, 0);
                else if (t < half) step<1, how, keep>(b, t, tiles - 1 - 2 * t);
                else step<2, how, keep>(b, t, tiles - 1 - 2 * (t - half));
            }
            if (keep && kept >= 0) job.undo->stored[group] = kept + 1;
            if (kept >= 0 && !end_block(kept) && work == Work::solve) job.stop.store(true, std::memory_order_relaxed);
            if (job.stop.load(std::memory_order_relaxed)) return;
        }
    }

private:
    T* ring_of(std::int64_t b) const { return ring + (b + 4) % 3 * block * 3 * n; }

    /// Rows offset … offset + n - 1 of all lanes lie between the first and the last row of the system.
    bool inside(std::int64_t offset) const {
        return start + offset >= 1 && start + (n - 1) * length + offset + n <= job.arrays.rows - 1;
    }

    /// Where the tile that is turned next is read from; its lines of some tiles later are asked for.
    template <bool keep>
    HWY_INLINE void prepare(std::int64_t offset) {
        const bool within = inside(offset), beside = keep && (offset < 0 || offset >= length);
        for (int k = 0; k < 4; ++k) {
            from[k] = base[k] + step_[k] * offset, stride[k] = step_[k] * length;
            ahead[k] = from[k] + step_[k] * job.ask_tiles * n, ahead_stride[k] = stride[k];
            if (within || (beside && k == rhs)) continue;
            copy_rows(k, offset, copied[k]);
            from[k] = copied[k], stride[k] = n;
        }
        // In place the neighbours' rows may hold x by now.
        if (beside) from[rhs] = job.undo->outside(job.cut, group * n, offset), stride[rhs] = 2 * block;
    }

    /// Turns one array of the tile.
    static HWY_INLINE void load(const T* HWY_RESTRICT from, std::int64_t stride, T* HWY_RESTRICT to) {
        turn_tile<n>(D(), from, stride, to, n);
    }

    /// Rows of the system as they are, an identity around it.
    HWY_NOINLINE void copy_rows(int k, std::int64_t offset, T* rows) const {
        for (int lane = 0; lane < n; ++lane, rows += n) {
            const std::int64_t row = start + lane * length + offset;
            if (row >= 1 && row + n < job.arrays.rows) hn::StoreU(hn::LoadU(d, base[k] + step_[k] * (row - start)), d, rows);
            else for (int i = 0; i < n; ++i) rows[i] = job.arrays.at(k, row + i);
        }
    }

    /// Tile t of block b is eliminated; between its rows the next one is turned, and tiles first and first-1 of the halo (1) or
    /// of the block (2) are substituted.
    template <int substitute, Store how, bool keep>
    HWY_INLINE void step(std::int64_t b, std::int64_t t, std::int64_t first) {
        PendingRow<D, work> p = pending;
        Substituted<D, work> s = solved;
        T* const slots = ring_of(b) + t * n * 3 * n;
        T* const before = t > 0 ? slots - 3 * n : ring_of(b - 1) + (block - 1) * 3 * n;
        T(*const next)[n * n] = stage[1 - current];
        const T(*const in)[n * n] = stage[current];
        prepare<keep>((b * tiles + t + 1) * n);
        // Stores of vectors may change any member for all that the compiler knows: what is used below is copied.
        const T *source[4], *asked[4];
        std::int64_t source_stride[4], asked_stride[4], back[4];
        for (int k = 0; k < 4; ++k) back[k] = step_[k] * (job.ask_tiles - again_tiles) * n;
        const bool second_level = job.second_level;
        for (int k = 0; k < 4; ++k) source[k] = from[k], source_stride[k] = stride[k], asked[k] = ahead[k], asked_stride[k] = ahead_stride[k];

        // Halos belong to others' logs.
        [[maybe_unused]] T* const log = !keep || b < 0 || b >= job.cut.blocks ? unkept : job.undo->log + (group * length + b * block + t * n) * n;
        [[maybe_unused]] const T* const rows = ring_of(substitute == 1 ? b - 1 : b - 2) + (first * n + n - 1) * 3 * n;
        const bool top = first == tiles - 1;
        V most = largest;
        if (substitute == 1 && top) s = {hn::Zero(d), hn::Zero(d)};
        if (substitute == 2 && top) {
            halo_before = halo_first, halo_first = s.near;
            largest_before = most, most = hn::Zero(d);
        }
#pragma GCC unroll 16
        for (int i = 0; i < n; ++i) {
#pragma GCC unroll 4
            for (int k = i * 4 / n; k < (i + 1) * 4 / n; ++k) load(source[k], source_stride[k], next[k]);
            if (second_level) {
#pragma GCC unroll 4
                for (int k = 0; k < 4; ++k) prefetch_second_level(asked[k]);
            } else {
                // A line is asked for twice, since cores drop what they are asked for while too much is under way.
#pragma GCC unroll 4
                for (int k = 0; k < 4; ++k) hwy::Prefetch(asked[k]), hwy::Prefetch(asked[k] - back[k]);
            }
#pragma GCC unroll 4
            for (int k = 0; k < 4; ++k) asked[k] += asked_stride[k];
            const auto row = [&](int k) HWY_ATTR { return hn::Load(d, in[k] + i * n); };
            if constexpr (keep) hn::Stream(row(rhs), d, log + i * n);
            p.step(d, row(lower), row(diag), row(upper), row(rhs), i > 0 ? slots + (i - 1) * 3 * n : before);
            if constexpr (substitute > 0) {
#pragma GCC unroll 2
                for (int q = 2 * i; q < 2 * i + 2; ++q) {
                    // The pivot row of the halo's last row is not there yet: x = 0 in it.
                    if (!(substitute == 1 && q == 0 && top)) s.step(d, rows - q * 3 * n);
                    if constexpr (substitute == 2) {
                        hn::Store(s.near, d, solution[q / n] + (n - 1 - q % n) * n);
                        if constexpr (work == Work::solve) most = of_larger_magnitude(d, most, s.near);
                        if (q == 0 && top) last_before = last, last = s.near;
                    }
                }
            }
        }
        largest = most;
        if constexpr (substitute == 2) store<how>((b - 2) * block + first * n);
        current = 1 - current;
        pending = p, solved = s;
    }

    /// The two tiles that were substituted.
    template <Store how>
    HWY_INLINE void store(std::int64_t offset) {
        for (int k = 0; k < 2; ++k, offset -= n) {
            if (HWY_LIKELY(inside(offset))) {
                turn_tile<n, how>(d, solution[k], n, job.arrays.x + start + offset, length);
            } else {
                alignas(64) T x[n * n];
                turn_tile<n>(d, solution[k], n, x, n);
                store_outside(offset, x);
            }
        }
    }

    /// A tile in part outside the system, where there is nothing to store.
    HWY_NOINLINE void store_outside(std::int64_t offset, const T* x) const {
        for (int lane = 0; lane < n; ++lane, x += n) {
            const std::int64_t row = start + lane * length + offset;
            if (row >= 0 && row + n <= job.arrays.rows) hn::StoreU(hn::LoadU(d, x), d, job.arrays.x + row);
            else for (int i = 0; i < n; ++i)
                if (row + i >= 0 && row + i < job.arrays.rows) job.arrays.x[row + i] = x[i];
        }
    }

    /// How the block fits the one before it where they meet. False where it is not finite.
    HWY_NOINLINE bool end_block(std::int64_t kept) {
        // The row above the block as this block sees it: its pivot row is still there.
        const V first = solved.near;
        Substituted<D, work> above = solved;
        above.step(d, ring_of(kept - 1) + (block - 1) * 3 * n);
        if (kept == 0) {
            report(&PivotedSeam<T>::before, above.near), report(&PivotedSeam<T>::first_largest, hn::Abs(largest));
            overall = jump = hn::Zero(d);
        } else {
            const V apart = hn::Max(hn::Abs(hn::Sub(above.near, last_before)), hn::Abs(hn::Sub(first, halo_before)));
            const V scale = hn::Max(hn::Abs(largest), hn::Abs(largest_before));
            jump = hn::Max(jump, hn::IfThenZeroElse(hn::Le(apart, hn::Mul(hn::Set(d, job.apart), scale)), apart));
        }
        overall = hn::Max(overall, hn::Abs(largest));
        if (kept == job.cut.blocks - 1) {
            report(&PivotedSeam<T>::after, halo_first), report(&PivotedSeam<T>::last_largest, hn::Abs(largest));
            report(&PivotedSeam<T>::largest, overall), report(&PivotedSeam<T>::jump, jump);
        }
        const auto finite = hn::Le(hn::Abs(above.near), hn::Set(d, hwy::HighestValue<T>()));
        return hn::AllTrue(d, hn::And(finite, hn::Eq(pending.poison, hn::Zero(d))));
    }

    HWY_INLINE void report(T PivotedSeam<T>::*what, V value) {
        alignas(64) T values[n];
        hn::Store(value, d, values);
        for (int lane = 0; lane < n; ++lane) job.seams[group * n + lane].*what = values[lane];
    }

    const D d;
    PivotedJob<T>& job;
    const std::int64_t group, start, length, block, tiles;
    T* const ring;
    const T* base[4];
    std::int64_t step_[4];
    int current = 0;
    PendingRow<D, work> pending;
    Substituted<D, work> solved;
    V last, last_before, halo_first, halo_before, largest, largest_before, overall, jump;
    const T *from[4], *ahead[4];  ///< of the tile that is turned next
    std::int64_t stride[4], ahead_stride[4];
    alignas(64) T copied[4][n * n];
    alignas(64) T stage[2][4][n * n];
    alignas(64) T solution[2][n * n];
    alignas(64) T unkept[n * n];
};

// Apart, since all in one function cost 5 to 20 % (registers).
template <class Sweep>
HWY_NOINLINE void sweep_in_place(Sweep& sweep) {
    sweep.template run<Store::regular, true>();
}

template <class Sweep>
HWY_NOINLINE void sweep_beside(Sweep& sweep, bool stream) {
    if (Sweep::whole_lines && stream) sweep.template run<Store::stream, false>();
    else sweep.template run<Store::regular, false>();
}

template <class T, Work work = Work::solve>
void pivoted_group(PivotedJob<T>& job, std::int64_t group, T* scratch) {
    using D = hn::ScalableTag<T>;
    PivotedGroup<D, work> sweep(D(), job, group, scratch);
    if (job.undo) sweep_in_place(sweep);
    else sweep_beside(sweep, job.stream);
    if (job.stream || job.undo) hwy::FlushStream();
}

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
