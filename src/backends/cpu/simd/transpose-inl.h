// SPDX-License-Identifier: BSD-3-Clause
// In-register transposes and tiles of N rows × N systems, N = lanes of a vector (f64: 2, 4, 8; f32: 4, 8, 16).
//
//   rows (one per system, contiguous)   r[s] = { p[s·stride + 0], …, p[s·stride + N-1] }
//   tile (lane = system)                v[i] = { p[0·stride + i], …, p[(N-1)·stride + i] }
//
// A transpose is log2 N stages of N shuffles: interleaves inside 128-bit blocks, then an exchange of whole blocks between
// vectors. Every array of vectors has N elements, known when compiled, so that it lives in registers. Included once per
// Highway target (between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE of the including unit's own namespace).
#include <cstddef>
#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"

#if defined(TRIFOLD_BACKENDS_CPU_SIMD_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_SIMD_TRANSPOSE_INL_H_
#undef TRIFOLD_BACKENDS_CPU_SIMD_TRANSPOSE_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_SIMD_TRANSPOSE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Lanes of a vector as a constant.
template <class D>
inline constexpr std::size_t lanes_of = hn::MaxLanes(D());

namespace detail {

// a: lanes (2k, 2k+1) of a row pair come together; as InterleaveLower and InterleaveUpper of each 128-bit block.
template <class D, class V>
HWY_INLINE void interleave(D d, V& a, V& b) {
    const V low = hn::InterleaveLower(d, a, b);
    b = hn::InterleaveUpper(d, a, b);
    a = low;
}

// Inside each 128-bit block: v[0 … L-1], L = lanes of a block, become the L×L transposes.
template <class D, class V>
HWY_INLINE void transpose_in_blocks(D d, V* HWY_RESTRICT v) {
    using T = hn::TFromD<D>;
    if constexpr (sizeof(T) == 8) {
        interleave(d, v[0], v[1]);
    } else {
        interleave(d, v[0], v[1]);
        interleave(d, v[2], v[3]);
        const hn::RepartitionToWide<D> wide;
        auto a = hn::BitCast(wide, v[0]), b = hn::BitCast(wide, v[2]);
        auto c = hn::BitCast(wide, v[1]), e = hn::BitCast(wide, v[3]);
        interleave(wide, a, b);
        interleave(wide, c, e);
        v[0] = hn::BitCast(d, a), v[1] = hn::BitCast(d, b);
        v[2] = hn::BitCast(d, c), v[3] = hn::BitCast(d, e);
    }
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
// Blocks {a0, a2, b0, b2} and {a1, a3, b1, b3} of a and b: the one shuffle of two vectors that Highway has no name for.
template <class D, class V>
HWY_INLINE void split_blocks(D d, V& a, V& b) {
    const hn::RebindToFloat<hn::Repartition<std::int64_t, D>> wide;
    const auto x = hn::BitCast(wide, a).raw, y = hn::BitCast(wide, b).raw;
    a = hn::BitCast(d, hn::Vec<decltype(wide)>{_mm512_shuffle_f64x2(x, y, 0x88)});
    b = hn::BitCast(d, hn::Vec<decltype(wide)>{_mm512_shuffle_f64x2(x, y, 0xdd)});
}
#endif

// Vectors v[0], v[step], … of B blocks: block k of vector g goes to block g of vector k.
template <std::size_t step, class D, class V>
HWY_INLINE void transpose_of_blocks(D d, V* HWY_RESTRICT v) {
    constexpr std::size_t blocks = lanes_of<D> * sizeof(hn::TFromD<D>) / 16;
    static_assert(blocks == 1 || blocks == 2 || blocks == 4, "vectors of 128, 256 or 512 bits");
    if constexpr (blocks == 2) {
        const V low = hn::ConcatLowerLower(d, v[step], v[0]);
        v[step] = hn::ConcatUpperUpper(d, v[step], v[0]);
        v[0] = low;
    } else if constexpr (blocks == 4) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
        split_blocks(d, v[0], v[step]);             // A0 A2 B0 B2, A1 A3 B1 B3
        split_blocks(d, v[2 * step], v[3 * step]);  // C0 C2 D0 D2, C1 C3 D1 D3
        split_blocks(d, v[0], v[2 * step]);         // A0 B0 C0 D0, A2 B2 C2 D2
        split_blocks(d, v[step], v[3 * step]);
#else
        static_assert(sizeof(D) == 0, "no target but AVX-512 has four blocks");
#endif
    }
}

// The rest of a transpose whose vectors hold a half of two systems each, see load_tile.
template <class D, class V>
HWY_INLINE void transpose_after_halves(D d, V* HWY_RESTRICT v) {
    constexpr std::size_t lanes = lanes_of<D>, per_block = 16 / sizeof(hn::TFromD<D>);
#pragma GCC unroll 16
    for (std::size_t first = 0; first < lanes; first += per_block) transpose_in_blocks(d, v + first);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
    if constexpr (lanes == 4 * per_block) {
        // v[g·L + j], g = 0, 1: blocks 0, 1 of the first two groups of L systems, of the other two; g = 2, 3: blocks 2, 3.
#pragma GCC unroll 16
        for (std::size_t j = 0; j < lanes; ++j)
            if (j / per_block % 2 == 0) split_blocks(d, v[j], v[j + per_block]);
    }
#endif
}

}  // namespace detail

/// v[0 … N-1], N lanes each: element j of v[i] is exchanged with element i of v[j].
template <class D, class V>
HWY_INLINE void transpose(D d, V* HWY_RESTRICT v) {
    constexpr std::size_t per_block = 16 / sizeof(hn::TFromD<D>), lanes = lanes_of<D>;
    static_assert(lanes >= per_block, "whole vectors only");
#pragma GCC unroll 16
    for (std::size_t first = 0; first < lanes; first += per_block) detail::transpose_in_blocks(d, v + first);
#pragma GCC unroll 16
    for (std::size_t j = 0; j < per_block; ++j) detail::transpose_of_blocks<per_block>(d, v + j);
}

/// N consecutive rows of N systems, any alignment: v[i] = row i, lane = system. lane_stride counts elements. The halves of a
/// vector are loaded from two systems at once: that is the first exchange of blocks, without a shuffle.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void load_tile(D d, const hn::TFromD<D>* HWY_RESTRICT p, std::int64_t lane_stride, V* HWY_RESTRICT v) {
    constexpr std::size_t lanes = lanes_of<D>, half = lanes / 2, per_block = 16 / sizeof(hn::TFromD<D>);
    if constexpr (lanes > per_block) {
        const hn::Half<D> dh;
        constexpr std::size_t apart = lanes == 4 * per_block ? per_block : half;
#pragma GCC unroll 16
        for (std::size_t k = 0; k < half; ++k) {
            const std::size_t s = k / apart * 2 * apart + k % apart;
            const hn::TFromD<D>* low = p + static_cast<std::int64_t>(s) * lane_stride;
            const hn::TFromD<D>* high = low + static_cast<std::int64_t>(apart) * lane_stride;
            v[k] = hn::Combine(d, hn::LoadU(dh, high), hn::LoadU(dh, low));
            v[k + half] = hn::Combine(d, hn::LoadU(dh, high + half), hn::LoadU(dh, low + half));
        }
        detail::transpose_after_halves(d, v);
    } else {
#pragma GCC unroll 16
        for (std::size_t s = 0; s < lanes; ++s) v[s] = hn::LoadU(d, p + static_cast<std::int64_t>(s) * lane_stride);
        transpose(d, v);
    }
}

enum class Store {
    regular,  ///< any alignment
    stream    ///< non-temporal: rows aligned to the vector; worth it only where whole cache lines are written soon; FlushStream() at the end
};

/// The reverse of load_tile. v is overwritten.
template <Store how = Store::regular, class D, class V = hn::Vec<D>>
HWY_INLINE void store_tile(D d, V* HWY_RESTRICT v, hn::TFromD<D>* HWY_RESTRICT p, std::int64_t lane_stride) {
    transpose(d, v);
#pragma GCC unroll 16
    for (std::size_t s = 0; s < lanes_of<D>; ++s) {
        hn::TFromD<D>* to = p + static_cast<std::int64_t>(s) * lane_stride;
        if constexpr (how == Store::stream) hn::Stream(v[s], d, to);
        else hn::StoreU(v[s], d, to);
    }
}

/// Into the second level: far ahead of use, where strides that map to few sets would push each other out of the first. Inlined
/// by force, as the compiler drops calls of functions that do nothing but prefetch.
HWY_INLINE void prefetch_second_level(const void* p) { __builtin_prefetch(p, 0, 2); }

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
