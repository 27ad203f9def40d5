// SPDX-License-Identifier: BSD-3-Clause
// `finish` of two vectors of chunks of a matrix that forgets nothing. Included once per Highway target.
//
// With x[s-1] known, gtsv's elimination runs from row s to row e; x[e-1] … x[s] follow from the known x[e], x[e+1]. No residual is computed: multipliers are at
// most 1 and inside the chunk x is as good as gtsv's. What was known twice is compared: x[s], and what is left of the last equation.
#include "hwy/cache_control.h"
#include "hwy/highway.h"

#include "backends/cpu/simd/turn-inl.h"
#include "backends/cpu/tridiagonal/finish_call.hpp"
#include "backends/cpu/tridiagonal/finish_check-inl.h"
#include "backends/cpu/tridiagonal/two_row-inl.h"

#if defined(TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_FINISH_TWO_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_FINISH_TWO_ROW_INL_H_
#undef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_FINISH_TWO_ROW_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_FINISH_TWO_ROW_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {

template <class V>
struct Ends {
    V before, first, last, after;  ///< x[s-1], x[s], x[e], x[e+1]
};

template <class D>
HWY_INLINE Ends<hn::Vec<D>> ends_of(D d, const FinishCall<hn::TFromD<D>>& call, const ChunkGroup<hn::TFromD<D>>& g) {
    using T = hn::TFromD<D>;
    constexpr int lanes = Tile<D>::lanes;
    alignas(64) T values[4][lanes];
    for (int s = 0; s < lanes; ++s) {
        const ChunkEnds<T> at = known_ends(call, g.first + HWY_MIN(s, g.count - 1));
        values[0][s] = at.before, values[1][s] = at.first, values[2][s] = at.last, values[3][s] = at.after;
    }
    return {hn::Load(d, values[0]), hn::Load(d, values[1]), hn::Load(d, values[2]), hn::Load(d, values[3])};
}

/// x of all chunks from the pivot rows; x of lane 0's first row goes to to[k], the others follow `stride` elements apart.
template <Store how, class D, Work work>
HWY_INLINE void substitute_two_row(D d, std::int64_t m, TwoRowFinish<D, work>* chain, const Ends<hn::Vec<D>>* ends, hn::TFromD<D>* const* pivots,
                                   hn::TFromD<D>* const* to, std::int64_t stride) {
    using T = hn::TFromD<D>;
    using V = hn::Vec<D>;
    constexpr int n = Tile<D>::lanes;
    alignas(64) T tile[2][n * n];
    TwoRowFinish<D, work> a = chain[0], b = chain[1];
    a.near = ends[0].last, b.near = ends[1].last, a.far = ends[0].after, b.far = ends[1].after;
    a.size = a.near, b.size = b.near;
    hn::Store(a.near, d, tile[0] + (n - 1) * n), hn::Store(b.near, d, tile[1] + (n - 1) * n);
    for (std::int64_t row = m - n; row >= 0; row -= n) {
        const T* const from_a = pivots[0] + row * 3 * n;
        const T* const from_b = pivots[1] + row * 3 * n;
        const bool bottom = row == m - n;
#pragma GCC unroll 16
        for (int i = n - 1; i >= 0; --i) {
            if (i == n - 1 && bottom) continue;
            const V x_a = a.substitute(d, from_a + i * 3 * n), x_b = b.substitute(d, from_b + i * 3 * n);
            hn::Store(x_a, d, tile[0] + i * n), hn::Store(x_b, d, tile[1] + i * n);
        }
        if (row == 0) hn::Store(ends[0].first, d, tile[0]), hn::Store(ends[1].first, d, tile[1]);
        turn_tile<n, how>(d, tile[0], n, to[0] + row, stride);
        turn_tile<n, how>(d, tile[1], n, to[1] + row, stride);
    }
    chain[0] = a, chain[1] = b;
}

/// False where some chunk is not good enough; x may then be stored, but not over rhs.
template <class D, Work work = Work::solve>
HWY_NOINLINE bool finish_two_row(D d, const FinishCall<hn::TFromD<D>>& call, const ChunkGroup<hn::TFromD<D>>* g, Ahead<hn::TFromD<D>> ahead,
                                 const ChunkWork<hn::TFromD<D>>& scratch) {
    using T = hn::TFromD<D>;
    using V = hn::Vec<D>;
    constexpr int lanes = Tile<D>::lanes;
    const std::int64_t m = g[0].rows, between = solution_stride(m, lanes);
    if (m % lanes != 0) return false;
    T* const pivots[2] = {scratch.pivots, scratch.pivots + 3 * lanes * m};
    T* const solutions[2] = {scratch.solutions + lanes, scratch.solutions + lanes + lanes * between};
    const Ends<V> ends[2] = {ends_of(d, call, g[0]), ends_of(d, call, g[1])};

    TwoRowFinish<D, work> chain[2];
    {
        TwoRowFinish<D, work> a, b;
        for_rows<2>(
            d, g, 1,
            [&](Tile<D>* tiles, std::int64_t row, int) HWY_ATTR {
                if (row == 0) a.start(d, tiles[0], ends[0].before), b.start(d, tiles[1], ends[1].before);
            },
            [&](Tile<D>* tiles, int i, std::int64_t row) HWY_ATTR {
                const std::int64_t at = (row + i - 1) * 3 * lanes;
                a.step(d, tiles[0], i, pivots[0] + at);
                ahead.next();
                b.step(d, tiles[1], i, pivots[1] + at);
                ahead.next();
            });
        chain[0] = a, chain[1] = b;
    }
    const bool in_place = call.arrays.x == call.arrays.data[3];
    T* const x = call.arrays.x + call.partition.first(g[0].first);
    const bool whole_lines = lanes * sizeof(T) == 64 && reinterpret_cast<std::uintptr_t>(x) % 64 == 0 && m % (64 / sizeof(T)) == 0;
    const bool direct = !in_place && (whole_lines || !call.stream);
    T* const to[2] = {direct ? x : solutions[0], direct ? x + lanes * m : solutions[1]};
    if (direct && call.stream) substitute_two_row<Store::stream>(d, m, chain, ends, pivots, to, m);
    else substitute_two_row<Store::regular>(d, m, chain, ends, pivots, to, direct ? m : between);

    // What is off, against max|A| max|x|.
    alignas(64) T off[2][lanes], scale[2][lanes];
    for (int k = 0; k < 2; ++k) {
        const auto& c = chain[k];
        const V left = hn::Abs(c.left(ends[k].last, ends[k].after)), moved = hn::Mul(hn::Abs(hn::Sub(c.near, ends[k].first)), hn::Abs(c.largest));
        const V both = hn::Add(left, moved);  // the larger of a NaN and a number may be the number
        hn::Store(hn::IfThenElse(hn::IsNaN(both), both, hn::Max(left, moved)), d, off[k]);
        hn::Store(hn::Mul(hn::Abs(c.largest), hn::Abs(c.size)), d, scale[k]);
    }
    constexpr double most = 256 * static_cast<double>(hwy::Epsilon<T>()) / 2;
    for (int k = 0; k < 2 && work == Work::solve; ++k)
        for (int s = 0; s < lanes; ++s) {
            const double by = off[k][s], of = scale[k][s];
            if (!(by <= most * of) || by > call.accept * of || !std::isfinite(of)) return false;
            call.residuals[g[k].first + s] = {by == 0 ? 0 : by / of, true, of};
        }
    if (direct) return true;
    for (int k = 0; k < 2; ++k)
        for (int s = 0; s < lanes; ++s) {
            T* const out = call.arrays.x + call.partition.first(g[k].first + s);
            if (call.stream) store_past_caches(d, solutions[k] + s * between, m, out);
            else std::copy_n(solutions[k] + s * between, m, out);
        }
    return true;
}

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
