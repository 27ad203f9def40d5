// SPDX-License-Identifier: BSD-3-Clause
// `finish` of one or two vectors of chunks without a look at every row: of a matrix that forgets nothing (two_row-inl.h), or whose rows stay dominant (dominant_row-inl.h).
// Included once per Highway target.
//
// With x[s-1] known, elimination runs from row s to row e; x[e-1] … x[s] follow from the known x[e], x[e+1]. No residual is computed: either multipliers are at
// most 1, and inside the chunk x is as good as gtsv's, or no row needs an exchange. What was known twice is compared: x[s], and what is left of the last equation.
#include <cmath>
#include <limits>

#include "hwy/cache_control.h"
#include "hwy/highway.h"

#include "backends/cpu/simd/turn-inl.h"
#include "backends/cpu/tridiagonal/dominant_row-inl.h"
#include "backends/cpu/tridiagonal/finish_call.hpp"
#include "backends/cpu/tridiagonal/finish_check-inl.h"
#include "backends/cpu/tridiagonal/two_row-inl.h"

#if defined(TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_FINISH_KNOWN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_FINISH_KNOWN_INL_H_
#undef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_FINISH_KNOWN_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_FINISH_KNOWN_INL_H_
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

/// x of all chunks from the pivot rows; x of lane 0's first row goes to to[k], the others follow `stride` elements apart. Tiles end `shift` rows behind a multiple of
/// their height, so that lines of x that begin there are stored whole; what is left at both ends of a chunk goes element by element.
template <int chains, Store how, class Chain, class D>
HWY_INLINE void substitute_known(D d, std::int64_t m, Chain* chain, const Ends<hn::Vec<D>>* ends, hn::TFromD<D>* const* pivots, hn::TFromD<D>* const* to, std::int64_t stride, int shift) {
    using T = hn::TFromD<D>;
    constexpr int n = Tile<D>::lanes, words = Chain::words;
    alignas(64) T tile[chains][n * n];
    Chain a = chain[0], b = chain[chains - 1];
    a.turn(ends[0].last, ends[0].after), b.turn(ends[chains - 1].last, ends[chains - 1].after);
    const auto row_at = [&](std::int64_t row, int i) HWY_ATTR {
        const std::int64_t at = (row + i) * words * n;
        hn::Store(a.substitute(d, pivots[0] + at), d, tile[0] + i * n);
        if constexpr (chains == 2) hn::Store(b.substitute(d, pivots[1] + at), d, tile[1] + i * n);
    };
    for (std::int64_t row = m > shift ? shift + (m - 1 - shift) / n * n : shift - n; row > -n; row -= n) {
        const int low = row < 0 ? static_cast<int>(-row) : 0, high = static_cast<int>(HWY_MIN(m - row, std::int64_t{n}));
        const bool bottom = row + high == m;
        if (bottom)
            for (int k = 0; k < chains; ++k) hn::Store(ends[k].last, d, tile[k] + (high - 1) * n);
        if (high - low == n && !bottom) {
#pragma GCC unroll 16
            for (int i = n - 1; i >= 0; --i) row_at(row, i);
        } else {
            for (int i = high - 1 - bottom; i >= low; --i) row_at(row, i);
        }
        if (row <= 0)
            for (int k = 0; k < chains; ++k) hn::Store(ends[k].first, d, tile[k] + low * n);
        for (int k = 0; k < chains; ++k) {
            if (high - low == n) turn_tile<n, how>(d, tile[k], n, to[k] + row, stride);
            else
                for (int lane = 0; lane < n; ++lane)
                    for (int i = low; i < high; ++i) to[k][lane * stride + row + i] = tile[k][i * n + lane];
        }
    }
    chain[0] = a;
    if constexpr (chains == 2) chain[1] = b;
}

/// Some end of a chunk is not a number: nothing may be stored there.
template <class D>
HWY_INLINE hn::Mask<D> ends_missing(const Ends<hn::Vec<D>>& ends) {
    return hn::Or(hn::Or(hn::IsNaN(ends.before), hn::IsNaN(ends.first)), hn::Or(hn::IsNaN(ends.last), hn::IsNaN(ends.after)));
}

/// False where some chunk is not good enough; x may then be stored, but not over rhs nor where less than anything is accepted.
template <class Chain, int chains, class D>
HWY_NOINLINE bool finish_known(D d, const FinishCall<hn::TFromD<D>>& call, const ChunkGroup<hn::TFromD<D>>* g, Ahead<hn::TFromD<D>> ahead,
                               const ChunkWork<hn::TFromD<D>>& scratch) {
    using T = hn::TFromD<D>;
    using V = hn::Vec<D>;
    constexpr int lanes = Tile<D>::lanes;
    const std::int64_t m = g[0].rows, between = solution_stride(m, lanes);
    T* const pivots[2] = {scratch.pivots, scratch.pivots + 3 * lanes * m};
    T* const solutions[2] = {scratch.solutions + lanes, scratch.solutions + lanes + lanes * between};
    Ends<V> ends[chains];
    bool whole = g[chains - 1].count == lanes && !g[chains - 1].bottom;
    for (int k = 0; k < chains; ++k) {
        ends[k] = ends_of(d, call, g[k]);
        whole = whole && hn::AllFalse(d, ends_missing<D>(ends[k]));
    }

    Chain chain[chains];
    {
        Chain a, b;
        for_rows<chains>(
            d, g, 1,
            [&](Tile<D>* tiles, std::int64_t row, int) HWY_ATTR {
                if (row == 0) {
                    a.start(d, tiles[0], ends[0].before);
                    if constexpr (chains == 2) b.start(d, tiles[1], ends[1].before);
                } else if constexpr (requires { a.next_tile(d); }) {
                    a.next_tile(d);
                    if constexpr (chains == 2) b.next_tile(d);
                }
            },
            [&](Tile<D>* tiles, int i, std::int64_t row) HWY_ATTR {
                const std::int64_t at = (row + i - 1) * Chain::words * lanes;
                a.step(d, tiles[0], i, pivots[0] + at);
                ahead.next();
                if constexpr (chains == 2) {
                    b.step(d, tiles[1], i, pivots[1] + at);
                    ahead.next();
                }
            });
        chain[0] = a;
        if constexpr (chains == 2) chain[1] = b;
    }
    for (const Chain& c : chain)
        if (!c.fit(d)) return false;
    const bool in_place = call.arrays.x == call.arrays.data[3];
    T* const x = call.arrays.x + call.partition.first(g[0].first);
    constexpr bool whole_lines = lanes * sizeof(T) == 64;
    const bool direct = whole && !in_place && std::isinf(call.accept) && (!call.stream || (whole_lines && m % lanes == 0));
    const int shift = direct && call.stream ? static_cast<int>(-reinterpret_cast<std::uintptr_t>(x) % 64 / sizeof(T)) : 0;
    T* const to[2] = {direct ? x : solutions[0], direct ? x + lanes * m : solutions[1]};
    if (direct && call.stream) substitute_known<chains, Store::stream>(d, m, chain, ends, pivots, to, m, shift);
    else substitute_known<chains, Store::regular>(d, m, chain, ends, pivots, to, direct ? m : between, 0);

    // What is off, against max|A| max|x|.
    alignas(64) T off[chains][lanes], scale[chains][lanes], missing[chains][lanes];
    for (int k = 0; k < chains; ++k) {
        const auto& c = chain[k];
        const V left = hn::Abs(c.left(ends[k].last, ends[k].after)), moved = hn::Mul(hn::Abs(hn::Sub(c.first(), ends[k].first)), hn::Abs(c.largest()));
        const V both = hn::Add(left, moved);  // the larger of a NaN and a number may be the number
        hn::Store(hn::IfThenElse(hn::IsNaN(both), both, hn::Max(left, moved)), d, off[k]);
        hn::Store(hn::Mul(hn::Abs(c.largest()), hn::Abs(c.size)), d, scale[k]);
        hn::Store(hn::IfThenElseZero(ends_missing<D>(ends[k]), hn::Set(d, T(1))), d, missing[k]);
    }
    constexpr double most = 256 * static_cast<double>(hwy::Epsilon<T>()) / 2, unknown = std::numeric_limits<double>::quiet_NaN();
    for (int k = 0; k < chains && Chain::solves; ++k)
        for (int s = 0; s < g[k].count; ++s) {
            const double by = off[k][s], of = scale[k][s];
            if (missing[k][s] == 0 && (!(by <= most * of) || by > call.accept * of || !std::isfinite(of))) return false;
            call.residuals[g[k].first + s] = missing[k][s] != 0 ? tridiagonal::ChunkResidual{unknown, false, 0} : tridiagonal::ChunkResidual{by == 0 ? 0 : by / of, true, of};
        }
    if (direct) return true;
    for (int k = 0; k < chains; ++k)
        for (int s = 0; s < g[k].count; ++s) {
            if (missing[k][s] != 0) continue;
            T* const out = call.arrays.x + call.partition.first(g[k].first + s);
            if (call.stream) store_past_caches(d, solutions[k] + s * between, m, out);
            else std::copy_n(solutions[k] + s * between, m, out);
        }
    return true;
}

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
