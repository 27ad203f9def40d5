// SPDX-License-Identifier: BSD-3-Clause
// See star.hpp. Included once per Highway target.
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "backends/cpu/mesh/star.hpp"
#include "backends/cpu/simd/transpose-inl.h"
#include "hwy/highway.h"

#if defined(TRIFOLD_BACKENDS_CPU_MESH_STAR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_MESH_STAR_INL_H_
#undef TRIFOLD_BACKENDS_CPU_MESH_STAR_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_MESH_STAR_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// {a, b}: the lanes of two vectors that follow each other, N of them from `from` on, 1 or N - 1.
template <int from, class D, class V>
HWY_INLINE V lanes_from(D d, V a, V b) {
    using T = hn::TFromD<D>;
    constexpr int lanes = static_cast<int>(lanes_of<D>), blocks = lanes * static_cast<int>(sizeof(T)) / 16, bytes = from == 1 ? sizeof(T) : 16 - sizeof(T);
    static_assert(from == 1 || from == lanes - 1);
    if constexpr (blocks == 1) {
        return hn::CombineShiftRightBytes<bytes>(d, b, a);
    } else if constexpr (blocks == 2) {
        const V middle = hn::ConcatLowerUpper(d, b, a);
        if constexpr (from == 1) return hn::CombineShiftRightBytes<bytes>(d, middle, a);
        else return hn::CombineShiftRightBytes<bytes>(d, b, middle);
    } else {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
        const hn::RebindToSigned<D> bits;
        const auto x = hn::BitCast(bits, a).raw, y = hn::BitCast(bits, b).raw;
        if constexpr (sizeof(T) == 4) return hn::BitCast(d, hn::Vec<decltype(bits)>{_mm512_alignr_epi32(y, x, from)});
        else return hn::BitCast(d, hn::Vec<decltype(bits)>{_mm512_alignr_epi64(y, x, from)});
#else
        static_assert(sizeof(D) == 0, "no target but AVX-512 has four blocks");
#endif
    }
}

/// moves: for benchmarks only, of what was loaded without arithmetic.
template <bool moves, class D, class T = hn::TFromD<D>>
struct StarRegisters {
    using V = hn::Vec<D>;
    static constexpr int N = static_cast<int>(lanes_of<D>);

    D d;
    V west, east, south, north, below, above, own, other;

    HWY_INLINE StarRegisters(D tag, const Star<T>& s)
        : d(tag), west(hn::Set(d, s.west)), east(hn::Set(d, s.east)), south(hn::Set(d, s.south)), north(hn::Set(d, s.north)), below(hn::Set(d, s.below)), above(hn::Set(d, s.above)),
          own(hn::Set(d, s.own)), other(hn::Set(d, s.other)) {}

    /// before, after: the vectors beside u along x.
    HWY_INLINE V at(V before, V u, V after, V in_south, V in_north, V under, V over) const {
        if constexpr (moves) return hn::Xor(hn::Xor(hn::Xor(before, u), hn::Xor(after, in_south)), hn::Xor(in_north, hn::Xor(under, over)));
        V v = hn::Mul(hn::Sub(lanes_from<N - 1>(d, before, u), u), west);
        v = hn::MulAdd(hn::Sub(lanes_from<1>(d, u, after), u), east, v);
        v = hn::MulAdd(hn::Sub(in_south, u), south, v);
        v = hn::MulAdd(hn::Sub(in_north, u), north, v);
        v = hn::MulAdd(hn::Sub(under, u), below, v);
        v = hn::MulAdd(hn::Sub(over, u), above, v);
        return hn::MulAdd(u, own, v);
    }

    HWY_INLINE V plus(V v, V g) const {
        if constexpr (moves) return hn::Xor(v, g);
        else return hn::MulAdd(g, other, v);
    }
};

/// `rows` rows at once: what lies between two of them is loaded for both. `here`: the row before them, they, the row behind them. n ≥ two vectors. Behind the last point zeros.
template <int rows, bool others, bool moves, class D, class T = hn::TFromD<D>>
HWY_INLINE void star_over(D d, const Star<T>& star, const T* const* here, const T* const* below, const T* const* above, const T* const* other, std::int64_t n, T* HWY_RESTRICT to, std::int64_t pitch) {
    constexpr int N = static_cast<int>(lanes_of<D>);
    using V = hn::Vec<D>;
    const StarRegisters<moves, D> numbers(d, star);
    V before[rows], own[rows], after[rows];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) before[r] = hn::Set(d, star.low_sign * here[r + 1][0] + star.low_offset), own[r] = hn::LoadU(d, here[r + 1]);
    std::int64_t i = 0;
    for (; i + 2 * N <= n; i += N) {
        V south = hn::LoadU(d, here[0] + i);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
            after[r] = hn::LoadU(d, here[r + 1] + i + N);
            const V north = r + 1 < rows ? own[r + 1 < rows ? r + 1 : r] : hn::LoadU(d, here[rows + 1] + i);
            V v = numbers.at(before[r], own[r], after[r], south, north, hn::LoadU(d, below[r] + i), hn::LoadU(d, above[r] + i));
            if constexpr (others) v = numbers.plus(v, hn::LoadU(d, other[r] + i));
            hn::StoreU(v, d, to + r * pitch + i);
            south = before[r] = own[r], own[r] = after[r];
        }
    }
    // The last whole vector, and a part of one: a row's last N values, turned to the front; what follows is its last value again.
    const std::size_t left = static_cast<std::size_t>(n) % N;
    alignas(64) hwy::MakeSigned<T> turned[N];
    for (std::size_t j = 0; j < N; ++j) turned[j] = static_cast<hwy::MakeSigned<T>>(std::min<std::size_t>(j + N - left, N - 1));
    const auto lanes = hn::SetTableIndices(d, turned);
    const auto inside = hn::FirstN(d, left);
    const V sign = hn::Set(d, star.high_sign), offset = hn::Set(d, star.high_offset);
    const auto part = [&](const T* row) HWY_ATTR { return hn::TableLookupLanes(hn::LoadU(d, row + n - N), lanes); };
    for (int r = 0; r < rows; ++r) {
        const T* const row = here[r + 1];
        const V u = hn::LoadU(d, row + i), rest = part(row), next = hn::IfThenElse(inside, rest, hn::MulAdd(rest, sign, offset));
        const V last = hn::LoadU(d, row + i - N);
        V v = numbers.at(last, u, next, hn::LoadU(d, here[r] + i), hn::LoadU(d, here[r + 2] + i), hn::LoadU(d, below[r] + i), hn::LoadU(d, above[r] + i));
        if constexpr (others) v = numbers.plus(v, hn::LoadU(d, other[r] + i));
        hn::StoreU(v, d, to + r * pitch + i);
        if (left == 0) continue;
        v = numbers.at(u, next, next, part(here[r]), part(here[r + 2]), part(below[r]), part(above[r]));
        if constexpr (others) v = numbers.plus(v, part(other[r]));
        hn::StoreU(hn::IfThenElseZero(inside, v), d, to + r * pitch + i + N);
    }
}

template <bool moves = false, class T>
HWY_INLINE void star_of_rows(const Star<T>& star, const StarRows<T>& from, std::int64_t rows, std::int64_t n, T* to, std::int64_t pitch) {
    constexpr std::int64_t at_once = 4;
    const hn::ScalableTag<T> d;
    const T *here[at_once + 2], *below[at_once], *above[at_once], *other[at_once];
    const auto over = [&]<int count>(std::int64_t first, std::integral_constant<int, count>) HWY_ATTR {
        for (std::int64_t r = 0; r < count; ++r) below[r] = from.below + (first + r) * from.below_pitch, above[r] = from.above + (first + r) * from.above_pitch;
        for (std::int64_t r = -1; r <= count; ++r) here[r + 1] = first + r < 0 ? from.south : first + r == rows ? from.north : from.here + (first + r) * from.pitch;
        if (from.other) {
            for (std::int64_t r = 0; r < count; ++r) other[r] = from.other + (first + r) * from.other_pitch;
            star_over<count, true, moves>(d, star, here, below, above, other, n, to + first * pitch, pitch);
            return;
        }
        star_over<count, false, moves>(d, star, here, below, above, other, n, to + first * pitch, pitch);
    };
    std::int64_t r = 0;
    for (; r + at_once <= rows; r += at_once) over(r, std::integral_constant<int, at_once>());
    for (; r < rows; ++r) over(r, std::integral_constant<int, 1>());
}

inline void star_f32(const Star<float>& star, const StarRows<float>& from, std::int64_t rows, std::int64_t n, float* to, std::int64_t pitch) { star_of_rows(star, from, rows, n, to, pitch); }
inline void star_f64(const Star<double>& star, const StarRows<double>& from, std::int64_t rows, std::int64_t n, double* to, std::int64_t pitch) { star_of_rows(star, from, rows, n, to, pitch); }

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
