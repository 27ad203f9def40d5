// SPDX-License-Identifier: BSD-3-Clause
// Tiles of a group of chunks (lane = chunk, V rows), prefetching, and the choice among three rows: what `reduce` and
// `finish` have in common inside the vector units. Included once per Highway target.
#include <cstdint>

#include "hwy/highway.h"

#include "backends/cpu/simd/transpose-inl.h"
#include "backends/cpu/tridiagonal/reduce_chunks.hpp"

#if defined(TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_REDUCE_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_REDUCE_TILES_INL_H_
#undef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_REDUCE_TILES_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_REDUCE_TILES_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {

enum Array { lower, diag, upper, rhs };

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

template <class D>
HWY_INLINE void load_group(D d, const ChunkGroup<hn::TFromD<D>>& g, std::int64_t first_row, int height, Tile<D>& tile) {
    constexpr int lanes = Tile<D>::lanes;
    const bool whole = height == lanes && g.count == lanes && !(g.top && first_row == 0) && !g.bottom;
#pragma GCC unroll 4
    for (int array = 0; array < 4; ++array) {
        if (HWY_LIKELY(whole)) {
            hn::Vec<D> v[lanes];
            load_tile(d, g.data[array] + first_row, g.stride[array], v);
#pragma GCC unroll 16
            for (int i = 0; i < lanes; ++i) hn::Store(v[i], d, tile.row(array, i));
        } else {
            load_slowly(d, g, array, first_row, height, tile.row(array, 0));
        }
    }
}

/// Asks for the lines of the groups that come next, evenly over the work on this one: the arrays of a group are contiguous.
template <class T>
struct Ahead {
    const char* at[4];
    std::int64_t step[4];
    std::int64_t left;  ///< lines of each array

    Ahead(const ChunkArrays<T>& arrays, std::int64_t chunk, std::int64_t chunks, std::int64_t chunk_rows) {
        for (int k = 0; k < 4; ++k) {
            at[k] = reinterpret_cast<const char*>(arrays.data[k] + chunk * arrays.stride[k]);
            step[k] = arrays.stride[k] ? 64 : 0;
        }
        left = chunks * chunk_rows * static_cast<std::int64_t>(sizeof(T)) / 64;
    }
    HWY_INLINE void lines(int count) {
        if (left <= 0) return;
        left -= count;
        for (int k = 0; k < 4; ++k) {
            const char* p = at[k];
            for (int l = 0; l < count; ++l, p += 64) __builtin_prefetch(p, 0, 2);
            at[k] += count * step[k];
        }
    }
};

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
