// SPDX-License-Identifier: BSD-3-Clause
// Second pass over one huge system: with both ends of every chunk known, its interior is computed anew, checked and stored.
//
// Equation   a_i x[i-1] + b_i x[i] + c_i x[i+1] = r_i,  rows s … e of a chunk, x[s-1], x[s], x[e], x[e+1] known and moved to
//            the right-hand side: m rows in m - 2 unknowns, consistent because the ends solve the interface rows
// Arrays     a, b, c, r, x: row i at [i]; lanes = chunks (as in reduce.cpp). Scratch per lane and row: u1, u2, d of the pivot
//            row  x[i] = d - u1 x[i+1] - u2 x[i+2], lane-transposed, and x; both stay in the second-level cache
// Writes     x of the chunks whose residual is accepted; x may be r, since a chunk reads no other chunk's rows
// Work       one group of 2 V chunks per step of a thread: elimination (two chains), back substitution, residual and store
// Words      5 per row (read a, b, c, r; write x). Groups run from last to first: the first pass ended there
// Numerics   the pivots of reduce.cpp. Where coefficients of a row nearly cancel, their sum is eliminated too, and the pivot is what it
//            leaves (as there): else pivots 1 + 1/k of Poisson's equation collect k/3 roundings, which the chunk's last equation
//            would have to bear. The residual uses the rounded x that is stored, before it is stored
// Source     docs/algorithms/two_pass.md
#include "backends/cpu/tridiagonal/finish.hpp"

#include <cmath>

#include "backends/cpu/tridiagonal/group_slices.hpp"
#include "backends/cpu/tridiagonal/pivoted.hpp"
#include "backends/cpu/tridiagonal/reduce.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/tridiagonal/finish.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/tridiagonal/finish_check-inl.h"
#include "backends/cpu/tridiagonal/finish_known-inl.h"
#include "backends/cpu/tridiagonal/reduce_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {

using tridiagonal::Partition;

template <class V>
struct Carried {
    V x0, x1, r;  ///< coefficients of x[i], x[i+1]; right-hand side
    V sum;        ///< of both coefficients, where sums are kept
};

template <class D, bool sums = false>
struct FinishChain {
    using T = hn::TFromD<D>;
    using V = hn::Vec<D>;
    static constexpr int lanes = Tile<D>::lanes;
    Carried<V> p, q;

    /// Moves the known x to the right-hand side of rows first_row … of the tile.
    HWY_INLINE void fold(D d, Tile<D>& tile, std::int64_t first_row, int height, std::int64_t m, const Ends<V>& ends) {
        const auto move = [&](std::int64_t row, int array, V x) HWY_ATTR {
            const std::int64_t i = row - first_row;
            if (i < 0 || i >= height) return;
            T* const r = tile.row(rhs, i);
            T* const coefficient = tile.row(array, i);
            hn::Store(hn::NegMulAdd(hn::Load(d, coefficient), x, hn::Load(d, r)), d, r);
            hn::Store(hn::Zero(d), d, coefficient);
        };
        if (first_row == 0) move(0, lower, ends.before), move(0, diag, ends.first), move(1, lower, ends.first);
        if (first_row + height > m - 2) move(m - 2, upper, ends.last), move(m - 1, diag, ends.last), move(m - 1, upper, ends.after);
    }

    HWY_INLINE void start(D d, Tile<D>& tile) {
        const V upper0 = hn::Load(d, tile.row(upper, 0)), diag1 = hn::Load(d, tile.row(diag, 1)), upper1 = hn::Load(d, tile.row(upper, 1));
        p = {upper0, hn::Zero(d), hn::Load(d, tile.row(rhs, 0)), upper0};
        q = {diag1, upper1, hn::Load(d, tile.row(rhs, 1)), hn::Add(diag1, upper1)};
    }

    /// Row i+1 joins, x[i] leaves; u1, u2, d of its pivot row go to `pivot_row`.
    HWY_INLINE void step(D d, Tile<D>& tile, int i, T* HWY_RESTRICT pivot_row) {
        const V a = hn::Load(d, tile.row(lower, i)), b = hn::Load(d, tile.row(diag, i)), c = hn::Load(d, tile.row(upper, i));
        const V r = hn::Load(d, tile.row(rhs, i));
        const Sorted<D> pending = sort_by_magnitude(d, p.x0, q.x0);
        const Sorted<D> all = sort_by_magnitude(d, pending.larger, a);
        const auto q_wins = pending.q_wins, n_wins = all.q_wins;
        const V inverse = hn::Div(hn::Set(d, T(1)), all.larger);

        const V w_x1 = hn::IfThenElse(q_wins, q.x1, p.x1), l_x1 = hn::IfThenElse(q_wins, p.x1, q.x1);
        const V w_r = hn::IfThenElse(q_wins, q.r, p.r), l_r = hn::IfThenElse(q_wins, p.r, q.r);
        const V other_x1 = hn::IfThenElse(n_wins, w_x1, b), other_x2 = hn::IfThenZeroElse(n_wins, c);
        const V other_r = hn::IfThenElse(n_wins, w_r, r);
        const V u1 = hn::Mul(hn::IfThenElse(n_wins, b, w_x1), inverse);
        const V u2 = hn::Mul(hn::IfThenElseZero(n_wins, c), inverse);
        const V right = hn::Mul(hn::IfThenElse(n_wins, r, w_r), inverse);
        hn::Store(u1, d, pivot_row), hn::Store(u2, d, pivot_row + lanes), hn::Store(right, d, pivot_row + 2 * lanes);

        V l_sum = hn::Zero(d), other_sum = l_sum, pivot_sum = l_sum;
        if constexpr (sums) {
            const V n_sum = hn::Add(hn::Add(a, c), b), w_sum = hn::IfThenElse(q_wins, q.sum, p.sum);
            l_sum = hn::IfThenElse(q_wins, p.sum, q.sum), other_sum = hn::IfThenElse(n_wins, w_sum, n_sum);
            pivot_sum = hn::Mul(hn::IfThenElse(n_wins, n_sum, w_sum), inverse);
        }
        p = {hn::NegMulAdd(pending.smaller, u1, l_x1), hn::NegMulAdd(pending.smaller, u2, hn::Zero(d)),
             hn::NegMulAdd(pending.smaller, right, l_r), hn::NegMulAdd(pending.smaller, pivot_sum, l_sum)};
        q = {hn::NegMulAdd(all.smaller, u1, other_x1), hn::NegMulAdd(all.smaller, u2, other_x2),
             hn::NegMulAdd(all.smaller, right, other_r), hn::NegMulAdd(all.smaller, pivot_sum, other_sum)};
        if constexpr (sums) take_from_sum(p), take_from_sum(q);
    }

    /// Where a row's two coefficients nearly cancel, the first one is what the sum leaves for it.
    static HWY_INLINE void take_from_sum(Carried<V>& row) {
        const V size = hn::Abs(row.sum);
        row.x0 = hn::IfThenElse(hn::Le(hn::Add(size, size), hn::Abs(row.x1)), hn::Sub(row.sum, row.x1), row.x0);
    }

    /// x of rows first_row … first_row + height - 1, which follow those of the last call downwards; p.x0, q.x0 hold the
    /// next two x meanwhile.
    HWY_INLINE void substitute(D d, std::int64_t first_row, int height, std::int64_t m, const Ends<V>& ends,
                               const T* HWY_RESTRICT pivot_rows, T* HWY_RESTRICT x, std::int64_t stride) {
        alignas(64) T tile[lanes * lanes];
        int i = height - 1, low = 0;
        if (first_row + height == m) {
            hn::Store(ends.last, d, tile + i * lanes);
            p.x0 = q.x0 = hn::Zero(d);
            --i;
        }
        if (first_row == 0) hn::Store(ends.first, d, tile), low = 1;
        const T* pivot_row = pivot_rows + (first_row + i - 1) * 3 * lanes;
        for (; i >= low; --i, pivot_row -= 3 * lanes) {
            const V far = hn::NegMulAdd(hn::Load(d, pivot_row + lanes), q.x0, hn::Load(d, pivot_row + 2 * lanes));
            q.x0 = p.x0;
            p.x0 = hn::NegMulAdd(hn::Load(d, pivot_row), p.x0, far);
            hn::Store(p.x0, d, tile + i * lanes);
        }
        V v[lanes];
#pragma GCC unroll 16
        for (int k = 0; k < lanes; ++k) v[k] = hn::Load(d, tile + k * lanes);
        store_tile(d, v, x + first_row, stride);
    }
};

template <int chains, bool sums, class D>
void finish_group_as(D d, const FinishCall<hn::TFromD<D>>& call, const ChunkGroup<hn::TFromD<D>>* g, Ahead<hn::TFromD<D>> ahead,
                  const ChunkWork<hn::TFromD<D>>& work) {
    using T = hn::TFromD<D>;
    using V = hn::Vec<D>;
    constexpr int lanes = Tile<D>::lanes;
    static_assert(chains == 1 || chains == 2);
    const std::int64_t m = g[0].rows, stride = solution_stride(m, lanes);
    T* const pivots[2] = {work.pivots, work.pivots + 3 * lanes * m};
    T* const solutions[2] = {work.solutions + lanes, work.solutions + lanes + lanes * stride};

    Ends<V> ends[chains];
    for (int k = 0; k < chains; ++k) ends[k] = ends_of(d, call, g[k]);

    FinishChain<D, sums> a, b;
    {
        const FlushToZero flush_to_zero;  // of two pending rows one takes no part in the end, and decays
        for_rows<chains>(
            d, g, 2,
            [&](Tile<D>* tiles, std::int64_t row, int height) HWY_ATTR {
                a.fold(d, tiles[0], row, height, m, ends[0]);
                if constexpr (chains == 2) b.fold(d, tiles[1], row, height, m, ends[1]);
                if (row > 0) return;
                a.start(d, tiles[0]);
                if constexpr (chains == 2) b.start(d, tiles[1]);
            },
            [&](Tile<D>* tiles, int i, std::int64_t row) HWY_ATTR {
                const std::int64_t at = (row + i - 2) * 3 * lanes;
                a.step(d, tiles[0], i, pivots[0] + at);
                ahead.next();
                if constexpr (chains == 2) {
                    b.step(d, tiles[1], i, pivots[1] + at);
                    ahead.next();
                }
            });
    }
    for (std::int64_t row = (m - 1) / lanes * lanes; row >= 0; row -= lanes) {
        const int height = static_cast<int>(HWY_MIN(m - row, std::int64_t{lanes}));
        a.substitute(d, row, height, m, ends[0], pivots[0], solutions[0], stride);
        if constexpr (chains == 2) b.substitute(d, row, height, m, ends[1], pivots[1], solutions[1], stride);
    }
    for (int k = 0; k < chains; ++k)
        for (int s = 0; s < g[k].count; ++s) {
            check_and_store(d, call, g[k].first + s, m, solutions[k] + s * stride);
        }
}

template <int chains, class D>
void finish_group(D d, const FinishCall<hn::TFromD<D>>& call, const ChunkGroup<hn::TFromD<D>>* g, Ahead<hn::TFromD<D>> ahead,
                  const ChunkWork<hn::TFromD<D>>& work) {
    FirstRows like = first_rows(d, g[0]);
    if constexpr (chains == 2) like = both(like, first_rows(d, g[1]));
    if (like.dominant && !call.partition.stored && finish_known<DominantFinish<D>, chains>(d, call, g, ahead, work)) return;
    if (!like.cancel && call.two_rows && finish_known<TwoRowFinish<D>, chains>(d, call, g, ahead, work)) return;
    const bool sums = like.cancel;
    if (sums) finish_group_as<chains, true>(d, call, g, ahead, work);
    else finish_group_as<chains, false>(d, call, g, ahead, work);
}

template <class T>
void finish_slice(const FinishCall<T>& call, GroupSlices::Slice slice, const ChunkWork<T>& work) {
    const hn::ScalableTag<T> d;
    constexpr int lanes = Tile<decltype(d)>::lanes, pair = 2 * lanes;
    const Partition& partition = call.partition;
    const std::int64_t regular = partition.chunks() - 1;  // all but the last, which may be longer
    if (slice.last) {
        const ChunkGroup<T> last = group_of(call.arrays, partition, regular, 1, work.defects);
        finish_group<1>(d, call, &last, Ahead<T>(call.arrays, HWY_MAX(slice.end - 1, 0) * pair), work);
    }
    const std::int64_t low = slice.first;
    for (std::int64_t group = slice.end - 1; group >= low; --group) {
        const std::int64_t first = group * pair;
        const int count = static_cast<int>(HWY_MIN(regular - first, std::int64_t{pair}));
        const Ahead<T> ahead(call.arrays, group > low ? first - pair : first);
        const ChunkGroup<T> g[2] = {group_of(call.arrays, partition, first, HWY_MIN(count, lanes), work.defects),
                                    group_of(call.arrays, partition, HWY_MIN(first + lanes, regular), HWY_MAX(count - lanes, 0),
                                             work.defects + lanes * partition.chunk_rows)};
        if (count == pair) {
            finish_group<2>(d, call, g, ahead, work);
        } else {
            finish_group<1>(d, call, g, ahead, work);
            if (g[1].count > 0) finish_group<1>(d, call, g + 1, ahead, work);
        }
    }
    if (call.stream) hwy::FlushStream();
}

void finish_slice_f32(const FinishCall<float>& call, GroupSlices::Slice slice, const ChunkWork<float>& work) { finish_slice(call, slice, work); }
void finish_slice_f64(const FinishCall<double>& call, GroupSlices::Slice slice, const ChunkWork<double>& work) { finish_slice(call, slice, work); }

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trifold::cpu {
namespace {

HWY_EXPORT(finish_slice_f32);
HWY_EXPORT(finish_slice_f64);

using namespace tridiagonal;

// Below this many bytes of x and coefficients a solve may still find them in the last-level cache.
constexpr std::int64_t cached_bytes = std::int64_t{64} << 20;

template <class T>
void run(const System& system, const Partition& partition, const Launch& launch, const double* boundary, double accept,
         ChunkResidual* residuals) {
    const auto slice = [](const auto&... arguments) {
        if constexpr (sizeof(T) == 4) HWY_DYNAMIC_DISPATCH(finish_slice_f32)(arguments...);
        else HWY_DYNAMIC_DISPATCH(finish_slice_f64)(arguments...);
    };
    const bool stream = !system.in_place && 5 * system.rows * static_cast<std::int64_t>(sizeof(T)) > cached_bytes;
    const FinishCall<T> call{chunk_arrays<T>(system, partition, launch.scratch), partition, boundary, accept, residuals, stream, !partition.stored && forgets_nothing(system)};
    GroupSlices slices(groups_of_chunks(partition, system.dtype), launch.threads, operand_bytes(system));
#pragma omp parallel for num_threads(launch.threads) schedule(static, 1)
    for (int thread = 0; thread < launch.threads; ++thread)
        slices.run(thread, true, [&](const GroupSlices::Slice& some) { slice(call, some, ChunkWork<T>::of(launch.scratch, partition.chunk_rows, thread)); });
}

}  // namespace

void finish(const System& system, const Partition& partition, const Launch& launch, const double* boundary, double accept,
            ChunkResidual* residuals) {
    if (system.dtype == DType::f32) run<float>(system, partition, launch, boundary, accept, residuals);
    else run<double>(system, partition, launch, boundary, accept, residuals);
}

}  // namespace trifold::cpu
#endif
