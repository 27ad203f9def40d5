// SPDX-License-Identifier: BSD-3-Clause
// Chunks of one system, each swept from what its neighbours are known to have: at the far end it arrives at something else than they take it to have, by
// the rounding of all its rows, which adds up where rows are alike. What is missing is spread over the rows it came from.
//
//   Down        w'_i = w_i + e_i,  e_i = s_i - l_i e_{i-1},  s_i = ±missing / Σ_i Π_{j>i} |l_j|, the signs those of Π_{j>i} (-l_j), so that all of them help
//   Up          the same with c', from the last row to the first one
//   Share       ±1 / Σ of a chunk is kept, its sign that of the product over all rows; s changes its sign from row to row where -l is negative
//   Numerics    each row is off by p_i s_i, as much as its own rounding may be. Not done where the cut's equation holds to `accept` as it is
#include <cstdint>

#include "backends/cpu/tridiagonal/group_tiles-inl.h"
#include "hwy/highway.h"

#if defined(TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_CHUNK_SPREAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_CHUNK_SPREAD_INL_H_
#undef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_CHUNK_SPREAD_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_CHUNK_SPREAD_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class T = hn::TFromD<D>>
class ChunkSpread {
public:
    using V = hn::Vec<D>;
    static constexpr int N = Line<D>::N, W = Line<D>::lanes, P = Line<D>::vectors;

    /// `there`: what the neighbours have taken, `here` what the sweep came to; `across`: what is on the other side of the cut. A line each.
    HWY_INLINE ChunkSpread(const T* there, const Line<D>& here, const T* across, const T* share) {
        const D d;
        const V accept = hn::Set(d, sizeof(T) == 4 ? T(0x1p-20) : T(0x1p-49)), none = hn::Zero(d);
        for (int k = 0; k < P; ++k) {
            const V taken = hn::LoadU(d, there + k * N), missing = hn::Sub(taken, here.v[k]), part = hn::LoadU(d, share + k * N);
            const V size = hn::Add(hn::Abs(taken), hn::Abs(hn::LoadU(d, across + k * N)));
            const auto off = hn::And(hn::Gt(hn::Abs(missing), hn::Mul(accept, size)), hn::Ne(part, none));
            needed_ |= !hn::AllFalse(d, off);
            share_.v[k] = hn::IfThenElseZero(off, hn::Mul(missing, part));
            sum_.v[k] = none;
        }
    }
    bool needed() const { return needed_; }

    /// A square of w, from its first row on.
    HWY_NOINLINE void down(T* HWY_RESTRICT w, const T* HWY_RESTRICT kept) {
        for (int r = 0; r < W; ++r) add(w + r * W, kept + (r * words + 1) * W);
    }
    /// A square of x, from its last row on.
    HWY_NOINLINE void up(T* HWY_RESTRICT x, const T* HWY_RESTRICT kept) {
        for (int r = W - 1; r >= 0; --r) add(x + r * W, kept + (r * words + 2) * W);
    }

private:
    static constexpr std::int64_t words = kept_words(false);

    HWY_INLINE void add(T* HWY_RESTRICT to, const T* HWY_RESTRICT coupling) {
        const D d;
        for (int k = 0; k < P; ++k) {
            const V c = hn::Load(d, coupling + k * N);
            share_.v[k] = hn::Xor(share_.v[k], hn::AndNot(c, hn::SignBit(d)));
            sum_.v[k] = hn::NegMulAdd(c, sum_.v[k], share_.v[k]);
            hn::Store(hn::Add(hn::Load(d, to + k * N), sum_.v[k]), d, to + k * N);
        }
    }

    Line<D> share_, sum_;
    bool needed_ = false;
};

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
