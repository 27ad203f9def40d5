// SPDX-License-Identifier: BSD-3-Clause
// Tiles of a group of chunks (lane = chunk, V rows), prefetching, and the choice among three rows: what `reduce` and
// `finish` have in common inside the vector units. Included once per Highway target.
#include <cstdint>

#include "hwy/highway.h"

#include "backends/cpu/simd/transpose-inl.h"
#include "backends/cpu/tridiagonal/reduce_chunks.hpp"
#include "devices/prefetch_level.hpp"

#if defined(TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_REDUCE_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_REDUCE_TILES_INL_H_
#undef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_REDUCE_TILES_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_REDUCE_TILES_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {

enum Array { lower, diag, upper, rhs };

/// While it lives, results below the normal range are 0: arithmetic with them takes a hundred times as long on some machines. For numbers that decay
/// chunk by chunk, where a residual or another row shows what that loses of a matrix of such numbers.
class FlushToZero {
public:
#if HWY_ARCH_X86
    FlushToZero() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | 0x8000); }
    ~FlushToZero() { _mm_setcsr(saved_); }
    FlushToZero(const FlushToZero&) = delete;
    FlushToZero& operator=(const FlushToZero&) = delete;

private:
    unsigned saved_;
#else
    FlushToZero() {}
#endif
};

/// What a row may lack of being dominant, of its pivot.
inline constexpr double dominance_slack = 1.0 / 512;

/// V rows × V lanes of each of the four arrays.
template <class D>
struct Tile {
    static constexpr int lanes = static_cast<int>(lanes_of<D>);
    using T = hn::TFromD<D>;
    alignas(64) T values[4][lanes * lanes];

    T* row(int array, std::int64_t i) { return values[array] + i * lanes; }
};

// Incomplete tiles: at the ends of the system, of a chunk or of the list of chunks.
template <class D>
HWY_NOINLINE void load_slowly(D d, const ChunkGroup<hn::TFromD<D>>& g, int array, std::int64_t first_row, int height,
                              hn::TFromD<D>* tile) {
    using T = hn::TFromD<D>;
    constexpr int lanes = Tile<D>::lanes;
    const T* const from = g.data[array];
    for (int i = 0; i < height; ++i) {
        const std::int64_t row = first_row + i;
        const bool unread = (g.top && array == lower && row == 0) || (g.bottom && array == upper && row == g.rows - 1);
        if (g.count == 1) {
            hn::Store(hn::Set(d, unread ? T(0) : from[row]), d, tile + i * lanes);
        } else {
            for (int s = 0; s < lanes; ++s) {
                const int lane = HWY_MIN(s, g.count - 1);
                tile[i * lanes + s] = unread && lane == 0 ? T(0) : from[lane * g.stride[array] + row];
            }
        }
    }
}

/// The first `rows` rows of load_tile: all of them, or half of them where a vector has four blocks.
template <std::size_t rows, class D, class V = hn::Vec<D>>
HWY_INLINE void load_rows(D d, const hn::TFromD<D>* HWY_RESTRICT p, std::int64_t lane_stride, V* HWY_RESTRICT v) {
    constexpr std::size_t lanes = lanes_of<D>, per_block = 16 / sizeof(hn::TFromD<D>);
    if constexpr (rows == lanes) {
        load_tile(d, p, lane_stride, v);
    } else {
        static_assert(2 * rows == lanes && lanes == 4 * per_block && rows == 2 * per_block, "half of four blocks");
        const hn::Half<D> dh;
#pragma GCC unroll 16
        for (std::size_t k = 0; k < rows; ++k) {
            const hn::TFromD<D>* low = p + static_cast<std::int64_t>(k / per_block * 2 * per_block + k % per_block) * lane_stride;
            v[k] = hn::Combine(d, hn::LoadU(dh, low + static_cast<std::int64_t>(per_block) * lane_stride), hn::LoadU(dh, low));
        }
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
        detail::transpose_in_blocks(d, v), detail::transpose_in_blocks(d, v + per_block);
#pragma GCC unroll 4
        for (std::size_t j = 0; j < per_block; ++j) detail::split_blocks(d, v[j], v[j + per_block]);
#endif
    }
}

/// Asks again for the lines of a tile that is read soon, where this pays: requests for a whole group ahead are dropped while too much is under way. Into the first
/// level one tile ahead, or, of more streams than that has room for, into the second two tiles ahead (docs/decisions/0016-two-rows-where-nothing-is-forgotten.md).
template <class D>
HWY_INLINE void ask_again(D, const ChunkGroup<hn::TFromD<D>>& g, int array, std::int64_t first_row) {
    constexpr int lanes = Tile<D>::lanes;
    const hn::TFromD<D>* at = g.data[array] + first_row + (lanes <= 8 ? 1 : 2) * lanes;
#pragma GCC unroll 16
    for (int k = 0; k < lanes; ++k, at += g.stride[array]) {
        if constexpr (lanes <= 8) hwy::Prefetch(at);
        else prefetch_second_level(at);
    }
}

template <class D>
HWY_INLINE void load_array(D d, const ChunkGroup<hn::TFromD<D>>& g, int array, std::int64_t first_row, hn::TFromD<D>* tile) {
    constexpr int lanes = Tile<D>::lanes;
    // As many rows at a time as need no more registers than the elimination beside leaves.
    constexpr int rows = HWY_MIN(lanes, 8);
    for (int first = 0; first < lanes; first += rows) {
        hn::Vec<D> v[rows];
        load_rows<rows>(d, g.data[array] + first_row + first, g.stride[array], v);
#pragma GCC unroll 16
        for (int i = 0; i < rows; ++i) hn::Store(v[i], d, tile + (first + i) * lanes);
    }
}

/// V rows of V chunks, none of which is outside the system.
template <class D>
HWY_INLINE bool is_whole(const ChunkGroup<hn::TFromD<D>>& g, std::int64_t first_row, int height) {
    return height == Tile<D>::lanes && g.count == Tile<D>::lanes && !(g.top && first_row == 0) && !g.bottom;
}

template <class D>
HWY_NOINLINE void load_group(D d, const ChunkGroup<hn::TFromD<D>>& g, std::int64_t first_row, int height, Tile<D>& tile) {
    for (int array = 0; array < 4; ++array) {
        if (is_whole<D>(g, first_row, height)) load_array(d, g, array, first_row, tile.row(array, 0));
        else load_slowly(d, g, array, first_row, height, tile.row(array, 0));
    }
}

/// Twice the sum of a row's coefficients against the sum of their magnitudes.
template <class D, class V = hn::Vec<D>>
HWY_INLINE hn::Mask<D> cancels(D, V a, V b, V c, V sum) {
    return hn::Le(hn::Add(hn::Abs(sum), hn::Abs(sum)), hn::Add(hn::Add(hn::Abs(a), hn::Abs(c)), hn::Abs(b)));
}

/// What the first rows of the chunks of a group are like.
struct FirstRows {
    bool cancel;    ///< all of some chunk: then it is worth keeping the sums
    bool dominant;  ///< all of every chunk
};
inline FirstRows both(FirstRows a, FirstRows b) { return {a.cancel || b.cancel, a.dominant && b.dominant}; }

template <class D>
HWY_NOINLINE FirstRows first_rows(D d, const ChunkGroup<hn::TFromD<D>>& g) {
    constexpr std::int64_t lanes = Tile<D>::lanes;
    Tile<D> tile;
    const int height = static_cast<int>(HWY_MIN(g.rows, lanes));
    load_group(d, g, 0, height, tile);
    auto cancel = hn::Eq(hn::Zero(d), hn::Zero(d)), dominant = cancel;
    const auto most = hn::Set(d, static_cast<hn::TFromD<D>>(1 + dominance_slack));
    for (int i = 0; i < height; ++i) {
        const auto a = hn::Load(d, tile.row(lower, i)), b = hn::Load(d, tile.row(diag, i)), c = hn::Load(d, tile.row(upper, i));
        cancel = hn::And(cancel, cancels(d, a, b, c, hn::Add(hn::Add(a, c), b)));
        dominant = hn::And(dominant, hn::Le(hn::Add(hn::Abs(a), hn::Abs(c)), hn::Mul(most, hn::Abs(b))));
    }
    return {!hn::AllFalse(d, cancel), hn::AllTrue(d, dominant)};
}

/// Runs down the rows of `chains` groups: `row_step(tiles, i, row)` for row i of the tiles that start at `row`, after
/// `tile_ready(tiles, row, height)`. The next tiles are transposed between the rows of these: the elimination is bound by latency,
/// the transposes by the shuffle units, so each runs in the other's shadow.
template <int chains, class D, class Ready, class Step>
HWY_INLINE void for_rows(D d, const ChunkGroup<hn::TFromD<D>>* g, int start, Ready tile_ready, Step row_step) {
    constexpr int lanes = Tile<D>::lanes, arrays = 4 * chains;
    constexpr int rows_per_array = HWY_MAX(lanes / arrays, 1), arrays_per_row = HWY_MAX(arrays / lanes, 1);
    Tile<D> tiles[2][chains];
    const std::int64_t m = g[0].rows;
    const auto height_at = [m](std::int64_t row) HWY_ATTR { return static_cast<int>(HWY_MIN(m - row, std::int64_t{lanes})); };
    const bool again = devices::asks_second_level();
    int now = 0;
    for (int k = 0; k < chains; ++k) load_group(d, g[k], 0, height_at(0), tiles[0][k]);
    for (std::int64_t row = 0; row < m; row += lanes, now ^= 1) {
        const int height = height_at(row), next_height = height_at(row + lanes);
        Tile<D>* const current = tiles[now];
        Tile<D>* const next = tiles[now ^ 1];
        tile_ready(current, row, height);
        bool whole = row > 0;
        for (int k = 0; k < chains; ++k) whole = whole && is_whole<D>(g[k], row + lanes, next_height);
        if (whole) {
            int i = 0;
            for (int array = 0; array < arrays;) {
                for (int n = 0; n < arrays_per_row; ++n, ++array) {
                    if (again) ask_again(d, g[array / 4], array % 4, row + lanes);
                    load_array(d, g[array / 4], array % 4, row + lanes, next[array / 4].row(array % 4, 0));
                }
                for (int n = 0; n < rows_per_array; ++n, ++i) row_step(current, i, row);
            }
        } else {
            for (int i = row == 0 ? start : 0; i < height; ++i) row_step(current, i, row);
            if (next_height > 0)
                for (int k = 0; k < chains; ++k) load_group(d, g[k], row + lanes, next_height, next[k]);
        }
    }
}

/// |larger| ≥ |smaller|, from p and q; q_wins says which is which. Of equal magnitudes either is the larger one.
template <class D>
struct Sorted {
    hn::Vec<D> larger, smaller;
    hn::Mask<D> q_wins;
};

/// Where opposite numbers of equal magnitude meet, the positive one.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V of_larger_magnitude(D, V p, V q) {
#if HWY_TARGET <= HWY_AVX3
    if constexpr (sizeof(V) == 64 && sizeof(hn::TFromD<D>) == 8) return V{_mm512_range_pd(p.raw, q.raw, 7)};
    else if constexpr (sizeof(V) == 64) return V{_mm512_range_ps(p.raw, q.raw, 7)};
    else
#endif
        return hn::Max(hn::Abs(p), hn::Abs(q));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE Sorted<D> sort_by_magnitude(D d, V p, V q) {
#if HWY_TARGET <= HWY_AVX3
    // One instruction each, so that the division need not wait for a mask. The mask follows from the values: where opposite
    // numbers of equal magnitude meet, the two instructions agree on an order of their own.
    Sorted<D> sorted;
    sorted.larger = of_larger_magnitude(d, p, q);
    if constexpr (sizeof(hn::TFromD<D>) == 8) sorted.smaller = V{_mm512_range_pd(p.raw, q.raw, 6)};
    else sorted.smaller = V{_mm512_range_ps(p.raw, q.raw, 6)};
    sorted.q_wins = hn::Eq(sorted.larger, q);
    return sorted;
#else
    (void)d;
    const auto q_wins = hn::Gt(hn::Abs(q), hn::Abs(p));
    return {hn::IfThenElse(q_wins, q, p), hn::IfThenElse(q_wins, p, q), q_wins};
#endif
}

/// Asks for the lines of the group that comes next, evenly over the elimination of this one: its part of each array is contiguous.
template <class T>
struct Ahead {
    const char* at[4];
    std::int64_t step[4];
    bool second_level = devices::asks_second_level();

    Ahead(const ChunkArrays<T>& arrays, std::int64_t chunk) {
        for (int k = 0; k < 4; ++k) {
            at[k] = reinterpret_cast<const char*>(arrays.data[k] + chunk * arrays.stride[k]);
            step[k] = arrays.stride[k] ? 64 : 0;
        }
    }
    /// One line of each array, for every row of a vector.
    HWY_INLINE void next() {
        for (int k = 0; k < 4; ++k) {
            if (second_level) prefetch_second_level(at[k]);
            else hwy::Prefetch(at[k]);
            at[k] += step[k];
        }
    }
};

/// One or two chains from their first rows to their last, which nothing but their state is left of.
template <int chains, class D, class Chain>
HWY_INLINE void eliminate(D d, const ChunkGroup<hn::TFromD<D>>* g, int start, Ahead<hn::TFromD<D>> ahead, Chain& first, Chain& second) {
    static_assert(chains == 1 || chains == 2);
    Chain a, b;
    for_rows<chains>(
        d, g, start,
        [&](Tile<D>* tiles, std::int64_t row, int) HWY_ATTR {
            if (row == 0) {
                a.start(d, tiles[0]);
                if constexpr (chains == 2) b.start(d, tiles[1]);
            } else if constexpr (requires { a.next_tile(d); }) {
                a.next_tile(d);
                if constexpr (chains == 2) b.next_tile(d);
            }
        },
        [&](Tile<D>* tiles, int i, std::int64_t) HWY_ATTR {
            a.step(d, tiles[0], i);
            ahead.next();
            if constexpr (chains == 2) {
                b.step(d, tiles[1], i);
                ahead.next();
            }
        });
    first = a;
    if constexpr (chains == 2) second = b;
}

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
