// SPDX-License-Identifier: BSD-3-Clause
// First pass over one huge system: every chunk of m rows is reduced to two rows.
//
// Equation   a_i x[i-1] + b_i x[i] + c_i x[i+1] = r_i,  rows s … e of a chunk. Its interior unknowns x[s+1] … x[e-1] occur in
//            these rows only; m - 2 pivots among them leave two rows in x[s-1], x[s], x[e], x[e+1].
// Arrays     a, b, c, r: row i at [i]; lanes = chunks, so lane k reads at stride m and tiles of V × V are transposed in registers
// Writes     two InterfaceRows per chunk; nothing of size n
// Work       one group of 2 V chunks per step of a thread, in two vector chains that hide each other's latency
// Words      4 per row (read a, b, c, r)
// Numerics   two pending rows P and Q on (x[s-1], x[s], x[i], x[i+1]); row i+1 joins with (x[i], x[i+1], x[i+2]). No other row has
//            x[i], so taking the largest of three entries as pivot is partial pivoting in full: the m × (m-2) block has full
//            column rank whenever A is nonsingular, whatever the boundaries, and no interior block needs to be nonsingular.
//            Multipliers ≤ 1. One division per row. A column without a pivot is named.
//            Where the coefficients of every row of a chunk nearly cancel (|a + b + c| ≤ (|a| + |b| + |c|) / 2, as in Poisson's
//            equation), what the chunk adds is of the size 1/m beside coefficients of 1 and would drown in their rounding: there
//            the sum of a row's coefficients is eliminated along with them, and the largest coefficient of each result is set
//            to that sum less the others (W. K. Grassmann, M. I. Taksar, D. P. Heyman 1985, for Markov chains).
// Source     docs/algorithms/two_pass.md; compare C. Klein and R. Strzodka, ICPP 2021 (two sweeps, pivoting among two rows)
#include "backends/cpu/tridiagonal/reduce.hpp"

#include <cmath>

#include "backends/cpu/tridiagonal/group_slices.hpp"
#include "backends/cpu/tridiagonal/pivoted.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/tridiagonal/reduce.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/tridiagonal/reduce_dominant-inl.h"
#include "backends/cpu/tridiagonal/reduce_tiles-inl.h"
#include "backends/cpu/tridiagonal/reduce_two_row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {

using tridiagonal::InterfaceRow;
using tridiagonal::Partition;

template <class V>
struct Pending {
    V before, first, x0, x1, r;  ///< coefficients of x[s-1], x[s], x[i], x[i+1]; right-hand side
    V sum;                       ///< of the four coefficients, where sums are kept
};

template <class D, bool sums = false>
struct ReduceChain {
    using V = hn::Vec<D>;
    Pending<V> p, q;
    V smallest;             ///< smallest |pivot| so far
    hn::Mask<D> cancelled;  ///< lanes whose rows have all cancelled so far, where sums are kept

    HWY_INLINE void start(D d, Tile<D>& tile) {
        const auto load = [&](int array, int row) HWY_ATTR { return hn::Load(d, tile.row(array, row)); };
        const V zero = hn::Zero(d);
        p = {load(lower, 0), load(diag, 0), load(upper, 0), zero, load(rhs, 0), zero};
        q = {zero, load(lower, 1), load(diag, 1), load(upper, 1), load(rhs, 1), zero};
        if constexpr (sums) {
            p.sum = hn::Add(hn::Add(p.before, p.x0), p.first);
            q.sum = hn::Add(hn::Add(q.first, q.x1), q.x0);
            cancelled = hn::And(cancels(d, p.before, p.first, p.x0, p.sum), cancels(d, q.first, q.x0, q.x1, q.sum));
        }
        smallest = hn::Set(d, hwy::HighestValue<hn::TFromD<D>>());
    }

    /// Row n (i+1) joins, x[i] leaves. w and l: the pending row with the larger and the smaller entry in column x[i].
    HWY_INLINE void step(D d, V a, V b, V c, V r) {
        const V zero = hn::Zero(d), one = hn::Set(d, hn::TFromD<D>(1));
        const Sorted<D> pending = sort_by_magnitude(d, p.x0, q.x0);
        const Sorted<D> all = sort_by_magnitude(d, pending.larger, a);
        const auto q_wins = pending.q_wins, n_wins = all.q_wins;
        smallest = hn::Min(hn::Abs(all.larger), smallest);  // in this order x86 keeps `smallest` where the pivot is NaN
        const V ml = hn::Div(pending.smaller, all.larger), mo = hn::Div(all.smaller, all.larger);

        const V w_before = hn::IfThenElse(q_wins, q.before, p.before), l_before = hn::IfThenElse(q_wins, p.before, q.before);
        const V w_first = hn::IfThenElse(q_wins, q.first, p.first), l_first = hn::IfThenElse(q_wins, p.first, q.first);
        const V w_x1 = hn::IfThenElse(q_wins, q.x1, p.x1), l_x1 = hn::IfThenElse(q_wins, p.x1, q.x1);
        const V w_r = hn::IfThenElse(q_wins, q.r, p.r), l_r = hn::IfThenElse(q_wins, p.r, q.r);

        const V pivot_x1 = hn::IfThenElse(n_wins, b, w_x1), other_x1 = hn::IfThenElse(n_wins, w_x1, b);
        const V pivot_r = hn::IfThenElse(n_wins, r, w_r), other_r = hn::IfThenElse(n_wins, w_r, r);
        p.x0 = hn::NegMulAdd(ml, pivot_x1, l_x1), q.x0 = hn::NegMulAdd(mo, pivot_x1, other_x1);
        p.r = hn::NegMulAdd(ml, pivot_r, l_r), q.r = hn::NegMulAdd(mo, pivot_r, other_r);
        if constexpr (sums) {
            const V sum = hn::Add(hn::Add(a, c), b);
            cancelled = hn::And(cancelled, cancels(d, a, b, c, sum));
            const V w_sum = hn::IfThenElse(q_wins, q.sum, p.sum), l_sum = hn::IfThenElse(q_wins, p.sum, q.sum);
            const V pivot_sum = hn::IfThenElse(n_wins, sum, w_sum), other_sum = hn::IfThenElse(n_wins, w_sum, sum);
            p.sum = hn::NegMulAdd(ml, pivot_sum, l_sum), q.sum = hn::NegMulAdd(mo, pivot_sum, other_sum);
        }
        // Row n has neither x[s-1] nor x[s], row w no x[i+2]: the zeros go into the multipliers.
        const V ml_of_w = hn::IfThenZeroElse(n_wins, ml), ml_of_n = hn::IfThenElseZero(n_wins, ml), minus = hn::Neg(mo);
        const V of_w = hn::IfThenElse(n_wins, one, minus), of_n = hn::IfThenElse(n_wins, minus, one);
        p.before = hn::NegMulAdd(ml_of_w, w_before, l_before), q.before = hn::Mul(of_w, w_before);
        p.first = hn::NegMulAdd(ml_of_w, w_first, l_first), q.first = hn::Mul(of_w, w_first);
        p.x1 = hn::NegMulAdd(ml_of_n, c, zero), q.x1 = hn::Mul(of_n, c);
    }

    HWY_INLINE void step(D d, Tile<D>& tile, int i) {
        step(d, hn::Load(d, tile.row(lower, i)), hn::Load(d, tile.row(diag, i)), hn::Load(d, tile.row(upper, i)),
             hn::Load(d, tile.row(rhs, i)));
    }

    HWY_NOINLINE void store(D d, const ChunkGroup<hn::TFromD<D>>& g, InterfaceRow* rows) const {
        constexpr int lanes = Tile<D>::lanes;
        alignas(64) hn::TFromD<D> out[2][5][lanes];
        const Pending<V>* pending[2] = {&p, &q};
        for (int k = 0; k < 2; ++k) {
            hn::Store(pending[k]->before, d, out[k][0]), hn::Store(pending[k]->first, d, out[k][1]);
            hn::Store(pending[k]->x0, d, out[k][2]), hn::Store(pending[k]->x1, d, out[k][3]), hn::Store(pending[k]->r, d, out[k][4]);
        }
        for (int s = 0; s < g.count; ++s)
            for (int k = 0; k < 2; ++k) {
                InterfaceRow& row = rows[2 * (g.first + s) + k];
                for (int c = 0; c < 4; ++c) row.coefficient[c] = out[k][c][s];
                row.rhs = out[k][4][s];
            }
        if constexpr (sums) {
            alignas(64) hn::TFromD<D> sum[2][lanes], all[lanes];
            hn::Store(p.sum, d, sum[0]), hn::Store(q.sum, d, sum[1]);
            hn::Store(hn::IfThenElseZero(cancelled, hn::Set(d, hn::TFromD<D>(1))), d, all);
            for (int s = 0; s < g.count; ++s)
                for (int k = 0; k < 2 && all[s] != 0; ++k) balance(rows[2 * (g.first + s) + k], sum[k][s]);
        }
    }

    /// The largest coefficient becomes what the sum leaves for it.
    static void balance(InterfaceRow& row, double sum) {
        int largest = 0;
        for (int c = 1; c < 4; ++c)
            if (std::fabs(row.coefficient[c]) > std::fabs(row.coefficient[largest])) largest = c;
        for (int c = 0; c < 4; ++c)
            if (c != largest) sum -= row.coefficient[c];
        row.coefficient[largest] = sum;
    }
};

// The first row of `chunk` whose column has no pivot; counted from the chunk's first row, -1 = none.
template <class D>
HWY_NOINLINE std::int64_t find_zero_pivot(D d, const ChunkGroup<hn::TFromD<D>>& g) {
    Tile<D> tile;
    ReduceChain<D> chain;
    for (std::int64_t row = 0; row < g.rows; row += Tile<D>::lanes) {
        const int height = static_cast<int>(HWY_MIN(g.rows - row, std::int64_t{Tile<D>::lanes}));
        load_group(d, g, row, height, tile);
        if (row == 0) chain.start(d, tile);
        for (int i = row == 0 ? 2 : 0; i < height; ++i) {
            chain.step(d, tile, i);
            if (hn::GetLane(chain.smallest) == 0) return row + i - 1;
        }
    }
    return -1;
}

template <int chains, bool sums, class D>
void reduce_group_as(D d, const ChunkArrays<hn::TFromD<D>>& arrays, const Partition& partition, const ChunkGroup<hn::TFromD<D>>* g,
                  Ahead<hn::TFromD<D>> ahead, hn::TFromD<D>* defects, InterfaceRow* rows, std::int64_t* zero_pivot) {
    constexpr int lanes = Tile<D>::lanes;
    ReduceChain<D, sums> a, b;
    eliminate<chains>(d, g, 2, ahead, a, b);
    const auto done = [&](const ReduceChain<D, sums>& chain, const ChunkGroup<hn::TFromD<D>>& group) HWY_ATTR {
        chain.store(d, group, rows);
        alignas(64) hn::TFromD<D> smallest[lanes];
        hn::Store(chain.smallest, d, smallest);
        for (int s = 0; s < group.count; ++s) {
            const std::int64_t chunk = group.first + s;
            zero_pivot[chunk] = -1;
            if (smallest[s] > 0) continue;
            const std::int64_t found = find_zero_pivot(d, group_of(arrays, partition, chunk, 1, defects));
            if (found >= 0) zero_pivot[chunk] = partition.first(chunk) + found;
        }
    };
    done(a, g[0]);
    if constexpr (chains == 2) done(b, g[1]);
}

template <int chains, class D>
void reduce_group(D d, bool two_rows, const ChunkArrays<hn::TFromD<D>>& arrays, const Partition& partition, const ChunkGroup<hn::TFromD<D>>* g,
                  Ahead<hn::TFromD<D>> ahead, hn::TFromD<D>* defects, InterfaceRow* rows, std::int64_t* zero_pivot) {
    FirstRows like = first_rows(d, g[0]);
    if constexpr (chains == 2) like = both(like, first_rows(d, g[1]));
    if (like.dominant && !partition.stored && reduce_dominant<chains>(d, g, ahead, rows, zero_pivot)) return;
    const bool sums = like.cancel;
    if (two_rows && !sums && reduce_two_row<chains>(d, g, ahead, rows, zero_pivot)) return;
    if (sums) reduce_group_as<chains, true>(d, arrays, partition, g, ahead, defects, rows, zero_pivot);
    else reduce_group_as<chains, false>(d, arrays, partition, g, ahead, defects, rows, zero_pivot);
}

template <class T>
void reduce_slice(bool two_rows, const ChunkArrays<T>& arrays, const Partition& partition, GroupSlices::Slice slice, T* defects, InterfaceRow* rows,
                  std::int64_t* zero_pivot) {
    const hn::ScalableTag<T> d;
    const FlushToZero flush_to_zero;  // coefficients of x[s-1] and x[s] decay
    constexpr int lanes = Tile<decltype(d)>::lanes;
    const std::int64_t regular = partition.chunks() - 1;  // all but the last, which may be longer
    for (std::int64_t group = slice.first; group < slice.end; ++group) {
        const std::int64_t first = group * 2 * lanes;
        const int count = static_cast<int>(HWY_MIN(regular - first, std::int64_t{2 * lanes}));
        const Ahead<T> ahead(arrays, first + count);
        const ChunkGroup<T> g[2] = {
            group_of(arrays, partition, first, HWY_MIN(count, lanes), defects),
            group_of(arrays, partition, HWY_MIN(first + lanes, regular), HWY_MAX(count - lanes, 0), defects + lanes * partition.chunk_rows)};
        if (count == 2 * lanes) {
            reduce_group<2>(d, two_rows, arrays, partition, g, ahead, defects, rows, zero_pivot);
        } else {
            reduce_group<1>(d, two_rows, arrays, partition, g, ahead, defects, rows, zero_pivot);
            if (g[1].count > 0) reduce_group<1>(d, two_rows, arrays, partition, g + 1, ahead, defects, rows, zero_pivot);
        }
    }
    if (slice.last) {
        const ChunkGroup<T> last = group_of(arrays, partition, regular, 1, defects);
        reduce_group<1>(d, two_rows, arrays, partition, &last, Ahead<T>(arrays, regular), defects, rows, zero_pivot);
    }
}

void reduce_slice_f32(bool two_rows, const ChunkArrays<float>& arrays, const Partition& partition, GroupSlices::Slice slice, float* defects,
                      InterfaceRow* rows, std::int64_t* zero_pivot) {
    reduce_slice(two_rows, arrays, partition, slice, defects, rows, zero_pivot);
}
void reduce_slice_f64(bool two_rows, const ChunkArrays<double>& arrays, const Partition& partition, GroupSlices::Slice slice, double* defects,
                      InterfaceRow* rows, std::int64_t* zero_pivot) {
    reduce_slice(two_rows, arrays, partition, slice, defects, rows, zero_pivot);
}

// Of all chunks but the last.
std::int64_t groups_f32(const Partition& partition) {
    constexpr std::int64_t together = 2 * Tile<hn::ScalableTag<float>>::lanes;
    return (partition.chunks() - 1 + together - 1) / together;
}
std::int64_t groups_f64(const Partition& partition) {
    constexpr std::int64_t together = 2 * Tile<hn::ScalableTag<double>>::lanes;
    return (partition.chunks() - 1 + together - 1) / together;
}

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trifold::cpu {
namespace {

HWY_EXPORT(reduce_slice_f32);
HWY_EXPORT(reduce_slice_f64);
HWY_EXPORT(groups_f32);
HWY_EXPORT(groups_f64);

using namespace tridiagonal;

template <class T>
void run(const System& system, const Partition& partition, const Launch& launch, InterfaceRow* rows, std::int64_t* zero_pivot) {
    const auto slice = [](const auto&... arguments) {
        if constexpr (sizeof(T) == 4) HWY_DYNAMIC_DISPATCH(reduce_slice_f32)(arguments...);
        else HWY_DYNAMIC_DISPATCH(reduce_slice_f64)(arguments...);
    };
    const ChunkArrays<T> arrays = chunk_arrays<T>(system, partition, launch.scratch);
    const bool two_rows = !partition.stored && forgets_nothing(system);
    GroupSlices slices(groups_of_chunks(partition, system.dtype), launch.threads, operand_bytes(system));
#pragma omp parallel for num_threads(launch.threads) schedule(static, 1)
    for (int thread = 0; thread < launch.threads; ++thread) {
        T* const defects = ChunkWork<T>::of(launch.scratch, partition.chunk_rows, thread).defects;
        slices.run(thread, false, [&](const GroupSlices::Slice& some) { slice(two_rows, arrays, partition, some, defects, rows, zero_pivot); });
    }
}

}  // namespace

std::int64_t groups_of_chunks(const Partition& partition, DType dtype) {
    return dtype == DType::f32 ? HWY_DYNAMIC_DISPATCH(groups_f32)(partition) : HWY_DYNAMIC_DISPATCH(groups_f64)(partition);
}

std::size_t operand_bytes(const System& system) {
    std::size_t words = 0;
    for (const Operand* operand : {&system.lower, &system.diag, &system.upper, &system.rhs}) words += operand->kind == Operand::Kind::view;
    return words * static_cast<std::size_t>(system.rows) * size_of(system.dtype);
}

void reduce(const System& system, const Partition& partition, const Launch& launch, InterfaceRow* rows, std::int64_t* zero_pivot) {
    if (system.dtype == DType::f32) run<float>(system, partition, launch, rows, zero_pivot);
    else run<double>(system, partition, launch, rows, zero_pivot);
}

const char* two_pass_refuses(const System& system) {
    if (system.levels != 0 || system.offsets) return "two_pass solves one system";
    if (system.periodic) return "two_pass does not solve periodic systems";
    if (system.accumulate) return "two_pass stores x and does not add to it";
    if (system.rows < 4) return "two_pass needs at least two chunks of two rows";
    for (const Operand* operand : {&system.lower, &system.diag, &system.upper, &system.rhs, &system.x}) {
        if (operand->kind == Operand::Kind::generator) return "two_pass reads arrays and scalars, not generators";
        if (operand->kind == Operand::Kind::view && operand->row_stride != 1) return "two_pass needs rows that lie side by side";
    }
    return nullptr;
}

std::size_t two_pass_scratch(const System& system, std::int64_t chunk_rows, int threads) {
    return system.dtype == DType::f32 ? ChunkWork<float>::bytes(chunk_rows, threads) : ChunkWork<double>::bytes(chunk_rows, threads);
}

}  // namespace trifold::cpu
#endif
