// SPDX-License-Identifier: BSD-3-Clause
// Tiles turned from memory to memory, in squares as wide as the processor turns fastest. Once per Highway target, see transpose-inl.h.
#include <cstdint>

#include "backends/cpu/simd/transpose-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

#if defined(TRIFOLD_BACKENDS_CPU_SIMD_TURN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_SIMD_TURN_INL_H_
#undef TRIFOLD_BACKENDS_CPU_SIMD_TURN_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_SIMD_TURN_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {

/// Vectors of squares that are turned from memory to memory: 256 bits at most. Zen 4 does shuffles of 512 bits in two halves, and a square of 16 × 16 floats
/// takes 5.4 (3.1 while nobody shares the core) cycles per row so, 3.0 (2.5) as four of 8 × 8, one of 8 × 8 doubles 3.5 (2.3) and 2.6 (2.3): measured.
template <class D>
struct SquareTag { using type = D; };
#if HWY_TARGET <= HWY_AVX3
template <>
struct SquareTag<hn::Simd<float, 16, 0>> { using type = hn::Simd<float, 8, 0>; };
#endif
template <class D>
using Squares = typename SquareTag<D>::type;

/// W × W elements: from[j·from_step + i] → to[i·to_step + j], both ways between systems and rows of lanes. With `stream` the pieces of a row are stored one after the other.
/// What is loaded soon in vectors wider than Squares<D> waits until it has left the store buffers.
template <int W, Store how = Store::regular, class D, class T = hn::TFromD<D>>
HWY_INLINE void turn_tile(D, const T* HWY_RESTRICT from, std::int64_t from_step, T* HWY_RESTRICT to, std::int64_t to_step) {
    using S = Squares<D>;
    const S s;
    constexpr int n = static_cast<int>(lanes_of<S>), pieces = W / n;
    static_assert(W % n == 0, "whole squares");
    if constexpr (how == Store::stream) {
#pragma GCC unroll 8
        for (int p = 0; p < pieces; ++p) {
            hn::Vec<S> v[pieces][n];
#pragma GCC unroll 8
            for (int k = 0; k < pieces; ++k) load_tile(s, from + k * n * from_step + p * n, from_step, v[k]);
#pragma GCC unroll 16
            for (int i = 0; i < n; ++i)
#pragma GCC unroll 8
                for (int k = 0; k < pieces; ++k) hn::Stream(v[k][i], s, to + (p * n + i) * to_step + k * n);
        }
    } else {
#pragma GCC unroll 8
        for (int k = 0; k < pieces; ++k)
#pragma GCC unroll 8
            for (int p = 0; p < pieces; ++p) {
                hn::Vec<S> v[n];
                load_tile(s, from + k * n * from_step + p * n, from_step, v);
#pragma GCC unroll 16
                for (int i = 0; i < n; ++i) hn::StoreU(v[i], s, to + (p * n + i) * to_step + k * n);
            }
    }
}

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
