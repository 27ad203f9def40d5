// SPDX-License-Identifier: BSD-3-Clause
// Elimination forwards and substitution backwards through one tile: a cache line of rows in as many lanes.
//
// Equation   p_i = b_i - a_i c'_{i-1},  c'_i = c_i / p_i,  d'_i = (d_i - a_i d'_{i-1}) / p_i;   x_i = d'_i - c'_i x_{i+1}
// Arrays     inputs: row i of lane l at p + l stride + i; ring tile: c' of the lanes, then d' of the lanes, row after row, and
//            at its end the largest sum of its rows in each lane
// Sums       t_i = |a_i / p_i|:  decay = prod t,  sum = 1 + t_i sum,  and the largest |c'|;  backwards  sum = (the tile's) + |c'_i| sum
// Numerics   one reciprocal per row; every lane's sums are what docs/algorithms/certified.md calls A, T, gamma and E
// Once per Highway target. Elimination of one tile is a chain of divisions; what is independent of it (turning the next tile,
// substitution of a tile behind) is laid between its rows, so that it lies within the window of an out-of-order core.
#include <cstdint>

#include "hwy/highway.h"

#include "backends/cpu/simd/turn-inl.h"
#include "backends/cpu/tridiagonal/sweep_job.hpp"

#if defined(TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_SWEEP_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_SWEEP_TILES_INL_H_
#undef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_SWEEP_TILES_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_SWEEP_TILES_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {

/// Vectors that make up the lanes of a tile, and pieces of N rows that make up its rows.
template <class D>
inline constexpr int vectors_of = static_cast<int>(64 / sizeof(hn::TFromD<D>) / lanes_of<D>);

/// The larger of two numbers that are not negative, by their bits where that is one instruction: not for the units that multiply, which have
/// the most to do here. NaN is the largest then.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V larger_of(D d, V a, V b) {
    using T = hn::TFromD<D>;
    if constexpr (HWY_TARGET <= HWY_AVX3 || (sizeof(T) == 4 && HWY_TARGET <= HWY_SSE4)) {
        const hn::RebindToUnsigned<D> bits;
        return hn::BitCast(d, hn::Max(hn::BitCast(bits, a), hn::BitCast(bits, b)));
    } else {
        return hn::Max(a, b);
    }
}

/// Elimination in one vector of lanes, after the rows so far.
template <class D, Work work = Work::solve>
struct Forward {
    using V = hn::Vec<D>;
    V c, d;                          ///< c'_i, d'_i
    V decay, sum, largest_sum, largest_c;

    HWY_INLINE void start_block(D d_) {
        decay = hn::Set(d_, hn::TFromD<D>(1));
        largest_c = hn::Zero(d_);
    }
    HWY_INLINE void start(D d_) {
        c = d = sum = hn::Zero(d_);
        start_block(d_);
    }
    HWY_INLINE void row(D d_, V lower, V diag, V upper, V rhs) {
        if constexpr (work != Work::solve) {
            c = hn::Xor(lower, diag), d = hn::Xor(upper, rhs);
            if constexpr (work == Work::move_and_wait) largest_sum = decay = hn::Div(hn::Set(d_, hn::TFromD<D>(1.7)), decay);
            return;
        }
        const V one = hn::Set(d_, hn::TFromD<D>(1));
        const V inverse = hn::Div(one, hn::NegMulAdd(lower, c, diag));
        const V t = hn::Abs(hn::Mul(lower, inverse));
        c = hn::Mul(upper, inverse);
        d = hn::Mul(hn::NegMulAdd(lower, d, rhs), inverse);
        decay = hn::Mul(decay, t);
        sum = hn::MulAdd(t, sum, one);
        largest_sum = larger_of(d_, largest_sum, sum);
        largest_c = larger_of(d_, largest_c, hn::Abs(c));
    }
};

template <class D, Work work = Work::solve>
struct Backward {
    using V = hn::Vec<D>;
    V x, sum, largest_sum, largest_x;

    V tile_sum;  ///< the largest forward sum of the tile's rows

    HWY_INLINE void start(D d) { x = sum = largest_sum = largest_x = hn::Zero(d); }
    HWY_INLINE void row(V c, V rhs) {
        if constexpr (work != Work::solve) {
            x = hn::Xor(c, rhs);
            return;
        }
        x = hn::NegMulAdd(c, x, rhs);
        sum = hn::MulAdd(hn::Abs(c), sum, tile_sum);
    }
    HWY_INLINE void kept_row(D d, V c, V rhs) {
        row(c, rhs);
        if constexpr (work != Work::solve) return;
        largest_sum = larger_of(d, largest_sum, sum);
        largest_x = larger_of(d, largest_x, hn::Abs(x));
    }
};

/// Where the next tile of inputs is.
template <class T>
struct TileInputs {
    const T* p[4];
    std::int64_t stride[4];
    std::int64_t step[4];  ///< from one tile to the next

    HWY_INLINE void next() {
        for (int k = 0; k < 4; ++k) p[k] += step[k];
    }
};

/// A tile of inputs, turned so that lanes lie side by side: row i of array k at rows[k] + i lanes.
template <class T>
struct Stage {
    static constexpr int lanes = 64 / sizeof(T);
    alignas(64) T rows[4][lanes * lanes];
};

/// Asks for the lines of tiles to come, one lane of every array at a time: in bursts they are dropped.
template <class T>
struct LinesAhead {
    const T* at[4];
    std::int64_t nearer[4];  ///< from there to the line that is asked for a second time

    LinesAhead(const TileInputs<T>& in, std::int64_t tiles, std::int64_t second) {
        for (int k = 0; k < 4; ++k) at[k] = in.p[k] + tiles * in.step[k], nearer[k] = (second - tiles) * in.step[k];
    }
    HWY_INLINE void next_lane(const TileInputs<T>& in, Asking how) {
        if (how == Asking::second_level) {
#pragma GCC unroll 4
            for (int k = 0; k < 4; ++k) prefetch_second_level(at[k]);
        } else {
#pragma GCC unroll 4
            for (int k = 0; k < 4; ++k) {
                hwy::Prefetch(at[k]);
                if (how == Asking::twice) hwy::Prefetch(at[k] + nearer[k]);
            }
        }
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) at[k] += in.stride[k];
    }
};

/// Turns one array of the next tile.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void load_stage(D d, const TileInputs<T>& in, int k, Stage<T>& stage) {
    turn_tile<Stage<T>::lanes>(d, in.p[k], in.stride[k], stage.rows[k], Stage<T>::lanes);
}

template <class D, Work work, class T = hn::TFromD<D>>
HWY_INLINE void forward_row(D d, const Stage<T>& stage, int i, Forward<D, work>* HWY_RESTRICT f, T* HWY_RESTRICT ring) {
    constexpr int n = static_cast<int>(lanes_of<D>), lanes = n * vectors_of<D>;
#pragma GCC unroll 4
    for (int v = 0; v < vectors_of<D>; ++v) {
        const int at = i * lanes + v * n;
        f[v].row(d, hn::Load(d, stage.rows[0] + at), hn::Load(d, stage.rows[1] + at), hn::Load(d, stage.rows[2] + at),
                 hn::Load(d, stage.rows[3] + at));
        hn::Store(f[v].c, d, ring + i * 2 * lanes + v * n);
        hn::Store(f[v].d, d, ring + i * 2 * lanes + lanes + v * n);
    }
}

template <class D, Work work, class T = hn::TFromD<D>>
HWY_INLINE void backward_halo_tile(D d, const T* HWY_RESTRICT ring, Backward<D, work>* HWY_RESTRICT back) {
    constexpr int n = static_cast<int>(lanes_of<D>), lanes = n * vectors_of<D>;
#pragma GCC unroll 4
    for (int v = 0; v < vectors_of<D>; ++v) {
        Backward<D, work> state = back[v];
        state.tile_sum = hn::Load(d, ring + 2 * lanes * lanes + v * n);
        for (int i = lanes - 1; i >= 0; --i) {
            const T* const from = ring + i * 2 * lanes + v * n;
            const hn::Vec<D> below = state.x;
            state.row(hn::Load(d, from), hn::Load(d, from + lanes));
            if constexpr (work != Work::solve) state.x = hn::Xor(state.x, below);
        }
        back[v] = state;
    }
}

template <class D, Work work, class T = hn::TFromD<D>>
HWY_INLINE void backward_row(D d, const T* HWY_RESTRICT ring, int i, Backward<D, work>* HWY_RESTRICT back,
                             T* HWY_RESTRICT out) {
    constexpr int n = static_cast<int>(lanes_of<D>), lanes = n * vectors_of<D>;
#pragma GCC unroll 4
    for (int v = 0; v < vectors_of<D>; ++v) {
        const T* const from = ring + i * 2 * lanes + v * n;
        back[v].kept_row(d, hn::Load(d, from), hn::Load(d, from + lanes));
        hn::Store(back[v].x, d, out + i * lanes + v * n);
    }
}

/// product *= |c'| over the rows of a ring tile; whether it is at most `close` in all lanes.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE bool closes(D d, const T* HWY_RESTRICT ring, hn::Vec<D>* HWY_RESTRICT product, T close) {
    constexpr int n = static_cast<int>(lanes_of<D>), lanes = n * vectors_of<D>;
    bool all = true;
#pragma GCC unroll 4
    for (int v = 0; v < vectors_of<D>; ++v) {
        hn::Vec<D> p = product[v];
        for (int i = 0; i < lanes; ++i) p = hn::Mul(p, hn::Abs(hn::Load(d, ring + i * 2 * lanes + v * n)));
        all &= hn::AllTrue(d, hn::Le(p, hn::Set(d, close)));
        product[v] = p;
    }
    return all;
}

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
