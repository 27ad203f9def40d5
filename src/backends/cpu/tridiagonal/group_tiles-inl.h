// SPDX-License-Identifier: BSD-3-Clause
// Tiles of a group: a cache line of rows of as many lanes. Elimination of the matrix, and both sweeps with what is kept of it.
//
//   Equation    a_i x[i-1] + b_i x[i] + c_i x[i+1] (+ E_i x[n-1]) = r_i,  p_i = b_i - a_i c'_{i-1}
//   Kept        per row 1/p, l = a/p, c' = c/p, each a line of lanes; in rings e = (E - a e_{i-1})/p and q_i = Q_i - q_{i-1} c'_{i-1} too, Q being
//               the last row of the matrix; its own 1/p stands in the first place of row n-1 of every lane, and behind it
//               that row's entries as they were: of x[0], x[n-2], x[n-1]
//   Sweeps      w_i = r_i/p_i - l_i w_{i-1};  x_i = w_i - c'_i x_{i+1} (- e_i x[n-1]),  x[n-1] = (r_{n-1} - Σ q_i w_i)/p_{n-1}
//   Arrays      w: a line of lanes per row, in scratch; operands and x: lane_group.hpp
//   Lanes       lane = system (or stretch of one); 64 bytes of them
//   Words       per row 1 read (r), 3 kept (5 in rings), 1 written; w stays in the nearest caches
//   Numerics    |L||U| stays below 9 times its row of A where |a c'| < 4 (|a| + |b|) and, in rings, |a e| and |q|, Σ|q e| are below 4 times the
//               entries of their row (Higham, Accuracy and Stability, 2nd ed., section 9.6): every right-hand side is solved to a few roundoffs; in
//               rings after the last row has been looked at
#include <algorithm>
#include <cstdint>
#include <limits>

#include "backends/cpu/simd/transpose-inl.h"
#include "backends/cpu/tridiagonal/lane_group.hpp"
#include "hwy/highway.h"

#if defined(TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_GROUP_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_GROUP_TILES_INL_H_
#undef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_GROUP_TILES_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_GROUP_TILES_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Vectors of a line of lanes.
template <class D>
struct Line {
    using T = hn::TFromD<D>;
    using V = hn::Vec<D>;
    static constexpr int N = static_cast<int>(lanes_of<D>), lanes = group_lanes<T>, vectors = lanes / N;
    V v[vectors];

    static HWY_INLINE Line zero() {
        Line all;
        for (int k = 0; k < vectors; ++k) all.v[k] = hn::Zero(D());
        return all;
    }
    static HWY_INLINE Line load(const T* p) {
        Line all;
        for (int k = 0; k < vectors; ++k) all.v[k] = hn::LoadU(D(), p + k * N);
        return all;
    }
    HWY_INLINE void store(T* p) const {
        for (int k = 0; k < vectors; ++k) hn::StoreU(v[k], D(), p + k * N);
    }
    /// A bit per lane that is NaN or infinite.
    std::uint32_t not_finite() const {
        const auto zero = hn::Zero(D());
        bool all = true;
        for (int k = 0; k < vectors; ++k) all = all && hn::AllTrue(D(), hn::Eq(hn::Mul(v[k], zero), zero));
        if (all) return 0;
        alignas(64) T values[lanes];
        store(values);
        std::uint32_t bits = 0;
        for (int j = 0; j < lanes; ++j)
            if (!(values[j] * T(0) == T(0))) bits |= 1u << j;
        return bits;
    }
};

/// What is kept of a row: lines of lanes, or numbers where all lanes have one matrix. Vector k of value `what`.
template <bool ring, bool shared, class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> kept_value(D d, const T* kept, int what, int k) {
    if constexpr (shared) return hn::Set(d, kept[what]);
    else return hn::Load(d, kept + what * group_lanes<T> + k * static_cast<int>(lanes_of<D>));
}

template <class D>
class GroupTiles {
public:
    using T = hn::TFromD<D>;
    using V = hn::Vec<D>;
    using How = typename LaneOperand<T>::How;
    static constexpr int N = Line<D>::N, W = Line<D>::lanes, P = Line<D>::vectors;

    /// A square of W rows × W lanes; its rows may stand where the operand has them.
    struct Square {
        const T* row;
        std::int64_t step;
    };

    /// Rows i … i+count-1 of an operand: rows before `low`, and of lane j from rows[j] - cut on, are `outside`.
    static HWY_INLINE Square load(const LaneGroup<T>& group, const LaneOperand<T>& from, std::int64_t i, int count, std::int64_t low, std::int64_t cut, T outside,
                                  T* HWY_RESTRICT stage) {
        const bool whole = group.even && i >= low && i + count <= group.longest - cut;
        if (whole && from.how == How::direct) return {from.data + i * from.row_step, from.row_step};
        if (whole && from.how == How::constant) {
            std::fill_n(stage, W, from.value);
            return {stage, 0};
        }
        const bool rows_there = count == W && i >= low && i + W <= group.shortest - cut;
        if (whole && from.how == How::turned && count == W) turn(from.data + i, from.lane_step, stage);
        else if (rows_there && from.how == How::gathered && from.row_step == 1) turn_gathered(from, i, stage);
        else load_edge(group, from, i, count, low, cut, outside, stage);
        return {stage, W};
    }

    /// Asks for the rows of the tile after the next one, where each is a line of its own.
    static HWY_INLINE void ask(const LaneGroup<T>& group, const LaneOperand<T>& from, std::int64_t i) {
        constexpr std::int64_t soon = 2 * W;
        if (from.how != How::direct) return;
        const std::int64_t end = std::min(i + soon + W, group.longest);
        for (std::int64_t r = i + soon; r < end; ++r) prefetch_second_level(from.data + r * from.row_step);
    }

    /// Elimination of rows i … i+count-1. state: c', e, q, Σ|q e| of the row before, then good (0 where all tests held, else NaN) and the
    /// largest entry of the last row, a line of lanes each.
    template <bool ring>
    static HWY_NOINLINE void eliminate(const Square& lower, const Square& diag, const Square& upper, const T* to_last, const T* last, int count, T* HWY_RESTRICT state,
                                       T* HWY_RESTRICT kept) {
        const D d;
        const V zero = hn::Zero(d), one = hn::Set(d, T(1)), growth = hn::Set(d, T(4)), nan = hn::Set(d, std::numeric_limits<T>::quiet_NaN());
        for (int k = 0; k < P; ++k) {
            const auto at = [&](const Square& s, int r) HWY_ATTR { return hn::LoadU(d, s.row + r * s.step + k * N); };
            T* const own = state + k * N;
            V c = hn::Load(d, own), e = hn::Load(d, own + W), q = hn::Load(d, own + 2 * W), sum = hn::Load(d, own + 3 * W), test = hn::Load(d, own + 4 * W);
            const V most = ring ? hn::Load(d, own + 5 * W) : zero;
            auto good = hn::Eq(one, one);
            T* out = kept + k * N;
            for (int r = 0; r < count; ++r, out += kept_words(ring) * W) {
                const V a = at(lower, r), b = at(diag, r), allowed = hn::Mul(growth, hn::Add(hn::Abs(a), hn::Abs(b))), back = hn::Mul(a, c);
                const V p = hn::Sub(b, back), s = hn::Div(one, p), l = hn::Mul(a, s);
                good = hn::And(good, hn::Lt(hn::Abs(back), allowed));
                test = hn::MulAdd(hn::Add(p, hn::Add(s, l)), zero, test);
                if constexpr (ring) {
                    const V over = hn::Mul(a, e);
                    good = hn::And(good, hn::Lt(hn::Abs(over), allowed));
                    q = hn::NegMulAdd(q, c, hn::Load(d, last + r * W + k * N));
                    e = hn::Mul(hn::Sub(hn::Load(d, to_last + r * W + k * N), over), s);
                    good = hn::And(good, hn::Le(hn::Abs(q), most));
                    sum = hn::MulAdd(hn::Abs(q), hn::Abs(e), sum);
                    // The last row's own entry loses q e.
                    hn::Store(e, d, out + 3 * W), hn::Store(q, d, out + 4 * W);
                    hn::Store(hn::MulAdd(q, e, hn::Load(d, own + 6 * W)), d, own + 6 * W);
                }
                c = hn::Mul(at(upper, r), s);
                hn::Store(s, d, out), hn::Store(l, d, out + W), hn::Store(c, d, out + 2 * W);
            }
            hn::Store(c, d, own), hn::Store(e, d, own + W), hn::Store(q, d, own + 2 * W), hn::Store(sum, d, own + 3 * W);
            hn::Store(hn::IfThenElse(good, test, nan), d, own + 4 * W);
        }
    }
    static constexpr int state_elements = 7 * W;

    /// A tile that goes down: rows of w from those of r; `sum`, in rings: Σ q w. Row k of w stands at w + k w_step.
    struct Down {
        Square rhs;
        const T* kept;
        T* w;
        std::int64_t w_step;
        Line<D> state, sum;
    };
    /// One that goes up: rows of x from those of w, to out + k step. `last`, in rings: x of the last row.
    struct Up {
        const T* kept;
        const T* w;
        std::int64_t w_step;
        Line<D> x, last;
        T* out;
        std::int64_t step;
        const T* soon = nullptr;  ///< where rows will be that do not go past the caches: to be asked for, ending with this one, `step` apart
    };
    /// Right-hand sides to be asked for on the way, one line per row.
    struct Asks {
        const T* rhs;
        std::int64_t step;
    };
    /// As many rows later what is kept is asked for too.
    static constexpr std::int64_t rows_ahead = 64;

    /// Whole tiles, one down and one up, row by row: two chains. Row r of the one that goes down may take the place in w of row W-1-r of the
    /// other. Pointers move, since there are 16 registers for them.
    template <bool ring, bool shared, bool stream>
    static HWY_INLINE void both(Down& down, Up& up, const Asks& asks) {
        const D d;
        constexpr std::int64_t words = kept_words(ring) * (shared ? 1 : W);
        Line<D> w = down.state, sum = down.sum, x = up.x;
        const Line<D> last = up.last;
        const T *rhs = down.rhs.row, *kept = down.kept, *kept_up = up.kept + (W - 1) * words, *ask = asks.rhs;
        const T* up_at = up.w + (W - 1) * up.w_step;
        T *at = down.w, *out = up.out + (W - 1) * up.step;
        const T* soon = up.soon ? up.soon + (W - 1) * up.step : nullptr;
        const std::int64_t rhs_step = down.rhs.step, w_step = down.w_step, up_step = up.w_step, out_step = up.step, ask_step = asks.step;
        for (int r = 0; r < W; ++r) {
            if constexpr (!shared)
                for (int what = 0; what < kept_words(ring); ++what) prefetch_second_level(kept + rows_ahead * words + what * W);
            prefetch_second_level(ask);
            if constexpr (!stream)
                if (soon) prefetch_second_level(soon), soon -= out_step;
            for (int k = 0; k < P; ++k) {
                V value = hn::Load(d, up_at + k * N);
                if constexpr (ring) value = hn::NegMulAdd(kept_value<ring, shared>(d, kept_up, 3, k), last.v[k], value);
                x.v[k] = hn::NegMulAdd(kept_value<ring, shared>(d, kept_up, 2, k), x.v[k], value);
                if constexpr (stream) hn::Stream(x.v[k], d, out + k * N);
                else hn::StoreU(x.v[k], d, out + k * N);
                const V right = hn::Mul(hn::LoadU(d, rhs + k * N), kept_value<ring, shared>(d, kept, 0, k));
                w.v[k] = hn::NegMulAdd(kept_value<ring, shared>(d, kept, 1, k), w.v[k], right);
                if constexpr (ring) sum.v[k] = hn::MulAdd(kept_value<ring, shared>(d, kept, 4, k), w.v[k], sum.v[k]);
                hn::Store(w.v[k], d, at + k * N);
            }
            rhs += rhs_step, at += w_step, up_at -= up_step, out -= out_step, ask += ask_step, kept += words, kept_up -= words;
        }
        down.state = w, down.sum = sum, up.x = x;
    }
    template <bool ring, bool shared>
    static HWY_INLINE void go_down(Down& down, int count) {
        const D d;
        constexpr std::int64_t words = kept_words(ring) * (shared ? 1 : W);
        Line<D> w = down.state, sum = down.sum;
        const T *rhs = down.rhs.row, *kept = down.kept;
        T* at = down.w;
        for (int r = 0; r < count; ++r, rhs += down.rhs.step, kept += words, at += down.w_step)
            for (int k = 0; k < P; ++k) {
                const V right = hn::Mul(hn::LoadU(d, rhs + k * N), kept_value<ring, shared>(d, kept, 0, k));
                w.v[k] = hn::NegMulAdd(kept_value<ring, shared>(d, kept, 1, k), w.v[k], right);
                if constexpr (ring) sum.v[k] = hn::MulAdd(kept_value<ring, shared>(d, kept, 4, k), w.v[k], sum.v[k]);
                hn::Store(w.v[k], d, at + k * N);
            }
        down.state = w, down.sum = sum;
    }
    template <bool ring, bool shared, bool stream>
    static HWY_INLINE void go_up(Up& up, int count) {
        const D d;
        constexpr std::int64_t words = kept_words(ring) * (shared ? 1 : W);
        Line<D> x = up.x;
        const Line<D> last = up.last;
        const T *at = up.w + (count - 1) * up.w_step, *kept = up.kept + (count - 1) * words;
        T* out = up.out + (count - 1) * up.step;
        for (int r = 0; r < count; ++r, at -= up.w_step, kept -= words, out -= up.step)
            for (int k = 0; k < P; ++k) {
                V value = hn::Load(d, at + k * N);
                if constexpr (ring) value = hn::NegMulAdd(kept_value<ring, shared>(d, kept, 3, k), last.v[k], value);
                x.v[k] = hn::NegMulAdd(kept_value<ring, shared>(d, kept, 2, k), x.v[k], value);
                if constexpr (stream) hn::Stream(x.v[k], d, out + k * N);
                else hn::StoreU(x.v[k], d, out + k * N);
            }
        up.x = x;
    }

    /// The W×W elements at p[j lane_step + i] → to[i W + j].
    static HWY_INLINE void turn(const T* HWY_RESTRICT p, std::int64_t lane_step, T* HWY_RESTRICT to) {
        const D d;
        for (int k = 0; k < P; ++k)
            for (int piece = 0; piece < P; ++piece) {
                V v[N];
                load_tile(d, p + k * N * lane_step + piece * N, lane_step, v);
#pragma GCC unroll 16
                for (int r = 0; r < N; ++r) hn::Store(v[r], d, to + (piece * N + r) * W + k * N);
            }
    }

    /// Rows i … i+W-1 of lanes anywhere, all of which have them.
    static HWY_NOINLINE void turn_gathered(const LaneOperand<T>& from, std::int64_t i, T* HWY_RESTRICT to) {
        const D d;
        for (int k = 0; k < P; ++k)
            for (int piece = 0; piece < P; ++piece) {
                V v[N];
                for (int s = 0; s < N; ++s) v[s] = hn::LoadU(d, from.data + from.offset[k * N + s] + i + piece * N);
                transpose(d, v);
                for (int r = 0; r < N; ++r) hn::Store(v[r], d, to + (piece * N + r) * W + k * N);
            }
    }

    /// And back: whole lines of x.
    template <bool stream>
    static HWY_INLINE void turn_back(const T* HWY_RESTRICT from, T* HWY_RESTRICT p, std::int64_t lane_step) {
        const D d;
        for (int k = 0; k < P; ++k)
            for (int piece = 0; piece < P; ++piece) {
                V v[N];
#pragma GCC unroll 16
                for (int r = 0; r < N; ++r) v[r] = hn::Load(d, from + (piece * N + r) * W + k * N);
                if constexpr (stream && P == 1) store_tile<Store::stream>(d, v, p + k * N * lane_step + piece * N, lane_step);
                else store_tile<Store::regular>(d, v, p + k * N * lane_step + piece * N, lane_step);
            }
    }

    static HWY_NOINLINE void store_rows(const T* HWY_RESTRICT from, std::int64_t from_step, int count, T* HWY_RESTRICT to, std::int64_t step, bool accumulate) {
        const D d;
        for (int r = 0; r < count; ++r)
            for (int k = 0; k < P; ++k) {
                const V x = hn::Load(d, from + r * from_step + k * N);
                T* const place = to + r * step + k * N;
                hn::StoreU(accumulate ? hn::Add(hn::LoadU(d, place), x) : x, d, place);
            }
    }

    /// Rows of lanes to x, whatever its layout; lanes in `skip` are left alone.
    static HWY_NOINLINE void scatter(const LaneGroup<T>& group, const T* from, std::int64_t from_step, std::int64_t i, int count, std::int64_t cut, std::uint32_t skip, bool accumulate) {
        const LaneOperand<T>& x = group.x;
        if (x.beside > 1 && x.row_step != 1 && skip == 0) {
            for (int r = 0; r < count && i + r < group.longest - cut; ++r) {
                T* const to = x.data + (i + r) * x.row_step;
                for (int j = 0; j < x.beside; ++j) to[j] = accumulate ? to[j] + from[r * from_step + j] : from[r * from_step + j];
            }
            return;
        }
        const auto end = [&](int j) { return skip >> j & 1 ? 0 : static_cast<int>(std::clamp<std::int64_t>(group.rows[j] - cut - i, 0, count)); };
#if HWY_TARGET <= HWY_AVX2
        if (x.row_step == 1) {
            const D d;
            for (int k = 0; k < P; ++k)
                for (int piece = 0; piece < P; ++piece) {
                    V v[N];
                    for (int r = 0; r < N; ++r) v[r] = hn::Load(d, from + (piece * N + r) * from_step + k * N);
                    transpose(d, v);
                    for (int s = 0; s < N; ++s) {
                        const int rows = std::clamp(end(k * N + s) - piece * N, 0, N);
                        if (rows == 0) continue;
                        T* const to = x.data + x.offset[k * N + s] + i + piece * N;
                        const auto there = hn::FirstN(d, static_cast<std::size_t>(rows));
                        if (accumulate) v[s] = hn::Add(v[s], hn::MaskedLoad(there, d, to));
                        hn::BlendedStore(v[s], there, d, to);
                    }
                }
            return;
        }
#endif
        for (int j = 0; j < W; ++j) {
            T* const to = x.data + x.offset[j] + i * x.row_step;
            for (int r = 0; r < end(j); ++r) to[r * x.row_step] = accumulate ? to[r * x.row_step] + from[r * from_step + j] : from[r * from_step + j];
        }
    }

private:
    /// Squares that are not whole, and every layout.
    static HWY_NOINLINE void load_edge(const LaneGroup<T>& group, const LaneOperand<T>& from, std::int64_t i, int count, std::int64_t low, std::int64_t cut, T outside,
                                       T* HWY_RESTRICT stage) {
        const int first = static_cast<int>(std::clamp<std::int64_t>(low - i, 0, count));
        if (group.even && (from.how == How::direct || from.how == How::constant)) {
            const int end = static_cast<int>(std::clamp<std::int64_t>(group.longest - cut - i, first, count));
            for (int r = 0; r < count; ++r) {
                if (r < first || r >= end) std::fill_n(stage + r * W, W, outside);
                else if (from.how == How::direct) std::copy_n(from.data + (i + r) * from.row_step, W, stage + r * W);
                else std::fill_n(stage + r * W, W, from.value);
            }
            return;
        }
        if (from.beside > 1 && from.row_step != 1 && from.how == How::gathered) {
            // Lanes that are there have the same rows: only the others are missing.
            const int end = static_cast<int>(std::clamp<std::int64_t>(group.longest - cut - i, first, count));
            for (int r = 0; r < count; ++r) {
                const int there = r < first || r >= end ? 0 : from.beside;
                std::copy_n(from.data + (i + r) * from.row_step, there, stage + r * W);
                std::fill_n(stage + r * W + there, W - there, outside);
            }
            return;
        }
        int ends[W];
        for (int j = 0; j < W; ++j) ends[j] = static_cast<int>(std::clamp<std::int64_t>(group.rows[j] - cut - i, first, count));
#if HWY_TARGET <= HWY_AVX2  // the masked loads of others read whole vectors
        if (from.row_step == 1 && from.how != How::constant && from.how != How::generated) {
            const D d;
            const V none = hn::Set(d, outside);
            for (int k = 0; k < P; ++k)
                for (int piece = 0; piece < P; ++piece) {
                    V v[N];
                    for (int s = 0; s < N; ++s) {
                        const auto before = hn::FirstN(d, static_cast<std::size_t>(std::clamp(first - piece * N, 0, N)));
                        const auto there = hn::AndNot(before, hn::FirstN(d, static_cast<std::size_t>(std::clamp(ends[k * N + s] - piece * N, 0, N))));
                        v[s] = hn::IfThenElse(there, hn::MaskedLoad(there, d, from.data + from.offset[k * N + s] + i + piece * N), none);
                    }
                    transpose(d, v);
                    for (int r = 0; r < N; ++r) hn::Store(v[r], d, stage + (piece * N + r) * W + k * N);
                }
            return;
        }
#endif
        for (int j = 0; j < W; ++j) {
            const int end = ends[j];
            for (int r = 0; r < first; ++r) stage[r * W + j] = outside;
            for (int r = end; r < count; ++r) stage[r * W + j] = outside;
            if (first == end) continue;
            if (from.how == How::constant) {
                for (int r = first; r < end; ++r) stage[r * W + j] = from.value;
            } else if (from.how == How::generated) {
                T column[W];
                const std::int64_t row = i + first + from.shift[j];
                if constexpr (sizeof(T) == 4) from.generator->fill_f32(column, row, end - first, from.number[j], 1, from.generator->parameters);
                else from.generator->fill_f64(column, row, end - first, from.number[j], 1, from.generator->parameters);
                for (int r = first; r < end; ++r) stage[r * W + j] = column[r - first];
            } else {
                const T* const p = from.data + from.offset[j] + i * from.row_step;
                for (int r = first; r < end; ++r) stage[r * W + j] = p[r * from.row_step];
            }
        }
    }
};

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
