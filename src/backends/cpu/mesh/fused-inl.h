// SPDX-License-Identifier: BSD-3-Clause
// See fused.hpp. Included once per Highway target.
#include <cstdint>

#include "backends/cpu/mesh/fused.hpp"
#include "backends/cpu/simd/transpose-inl.h"
#include "hwy/highway.h"

#if defined(TRIFOLD_BACKENDS_CPU_MESH_FUSED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_MESH_FUSED_INL_H_
#undef TRIFOLD_BACKENDS_CPU_MESH_FUSED_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_MESH_FUSED_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V>
HWY_INLINE bool finite(D d, V v) {
    const V zero = hn::Zero(d);
    return hn::AllTrue(d, hn::Eq(hn::Mul(v, zero), zero));
}

/// Groups of lanes in a strip: each is a chain of multiply-adds. A strip stays in the first-level cache.
template <class D>
inline constexpr std::int64_t groups_of = lanes_of<D> * sizeof(hn::TFromD<D>) == 64 ? 1 : 2;

/// A line of the cache of rows from … to - 1 of coming, at value i of each.
template <class T>
HWY_INLINE void ask_for(const ComingRows<T>& coming, int from, int to, std::int64_t rows, std::int64_t i) {
    if (i % static_cast<std::int64_t>(64 / sizeof(T)) != 0) return;
    for (int c = from; c < to; ++c) {
        const T* p = coming.rows[static_cast<std::size_t>(c)].first + i;
        const std::int64_t stride = coming.rows[static_cast<std::size_t>(c)].row_stride;
        if (coming.second_level)
            for (std::int64_t r = 0; r < rows; ++r, p += stride) prefetch_second_level(p);
        else
            for (std::int64_t r = 0; r < rows; ++r, p += stride) hwy::Prefetch(p);
    }
}

template <bool whole, class D, class T>
HWY_INLINE bool strip_of(D d, const LineFactors<T>& along_x, const LineFactors<T>& along_y, T* HWY_RESTRICT strip, std::int64_t strip_pitch, std::int64_t first, std::int64_t rows,
                         T* HWY_RESTRICT plane, std::int64_t pitch, const ComingRows<T>& coming) {
    constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<D>), G = groups_of<D>;
    using V = hn::Vec<D>;
    const std::int64_t n = (along_x.n + N - 1) / N * N;
    const T *const scale = along_x.scale.data(), *const lower = along_x.lower.data(), *const upper = along_x.upper.data();
    V w[G];
    for (std::int64_t g = 0; g < G; ++g) w[g] = hn::Zero(d);
    const int half = (coming.count + 1) / 2;
    for (std::int64_t i = 0; i < n; i += N) {
        ask_for(coming, 0, half, G * N, i);
        for (std::int64_t g = 0; g < G; ++g) {
            T* const square = strip + g * N * strip_pitch + i;
            V tile[N];
            load_tile(d, square, strip_pitch, tile);
#pragma GCC unroll 16
            for (std::int64_t k = 0; k < N; ++k) {
                w[g] = hn::NegMulAdd(hn::Set(d, lower[i + k]), w[g], hn::Mul(tile[k], hn::Set(d, scale[i + k])));
                hn::StoreU(w[g], d, square + k * strip_pitch);  // as columns now
            }
        }
    }
    const T *const scale_y = along_y.scale.data() + first, *const lower_y = along_y.lower.data() + first;
    for (std::int64_t g = 0; g < G; ++g) w[g] = hn::Zero(d);
    for (std::int64_t i = n - N; i >= 0; i -= N) {
        ask_for(coming, half, coming.count, G * N, i);
        T* const at = plane + first * pitch + i;
        V before = first > 0 ? hn::LoadU(d, at - pitch) : hn::Zero(d);
        for (std::int64_t g = 0; g < G; ++g) {
            const T* const square = strip + g * N * strip_pitch + i;
            V tile[N];
#pragma GCC unroll 16
            for (std::int64_t k = N - 1; k >= 0; --k) tile[k] = w[g] = hn::NegMulAdd(hn::Set(d, upper[i + k]), w[g], hn::LoadU(d, square + k * strip_pitch));
            transpose(d, tile);
#pragma GCC unroll 16
            for (std::int64_t k = 0; k < N; ++k) {
                const std::int64_t l = g * N + k;
                if (!whole && l >= rows) break;
                before = hn::NegMulAdd(hn::Set(d, lower_y[l]), before, hn::Mul(tile[k], hn::Set(d, scale_y[l])));
                hn::StoreU(before, d, at + l * pitch);
            }
        }
    }
    bool good = true;
    for (std::int64_t g = 0; g < G; ++g) good = good && finite(d, w[g]);
    return good;
}

template <class T>
HWY_INLINE bool strip(const LineFactors<T>& along_x, const LineFactors<T>& along_y, T* strip, std::int64_t strip_pitch, std::int64_t first, std::int64_t rows, T* plane, std::int64_t pitch,
                      const ComingRows<T>& coming) {
    const hn::ScalableTag<T> d;
    if (rows == groups_of<decltype(d)> * static_cast<std::int64_t>(lanes_of<decltype(d)>)) return strip_of<true>(d, along_x, along_y, strip, strip_pitch, first, rows, plane, pitch, coming);
    return strip_of<false>(d, along_x, along_y, strip, strip_pitch, first, rows, plane, pitch, coming);
}

/// What the kernel does besides lines along y backwards.
enum class Depth { none, first, next };

template <int V, bool past_cache, Depth depth, class D, class T>
HWY_INLINE bool back(D d, const LineFactors<T>& f, const T* HWY_RESTRICT plane, std::int64_t pitch, const AlongZ<T>& z, T* HWY_RESTRICT front, T* HWY_RESTRICT to, std::int64_t to_pitch) {
    constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<D>);
    const T* const upper = f.upper.data();
    const auto scale = hn::Set(d, z.scale), lower = hn::Set(d, z.lower);
    hn::Vec<D> v[V];
    for (int k = 0; k < V; ++k) v[k] = hn::Zero(d);
    for (std::int64_t i = f.n - 1; i >= 0; --i) {
        const auto c = hn::Set(d, upper[i]);
#pragma GCC unroll 8
        for (int k = 0; k < V; ++k) {
            v[k] = hn::NegMulAdd(c, v[k], hn::LoadU(d, plane + i * pitch + k * N));
            auto w = v[k];
            if constexpr (depth != Depth::none) {
                T* const own = front + i * pitch + k * N;
                w = hn::Mul(w, scale);
                if constexpr (depth == Depth::next) w = hn::NegMulAdd(lower, hn::LoadU(d, own), w);
                hn::StoreU(w, d, own);
            }
            if constexpr (past_cache) hn::Stream(w, d, to + i * to_pitch + k * N);
            else hn::StoreU(w, d, to + i * to_pitch + k * N);
        }
    }
    bool good = true;
    for (int k = 0; k < V; ++k) good = good && finite(d, v[k]);
    return good;
}

template <bool past_cache, Depth depth, class T>
HWY_INLINE bool back_over(const LineFactors<T>& f, std::int64_t columns, const T* plane, std::int64_t pitch, const AlongZ<T>& z, T* front, T* to, std::int64_t to_pitch) {
    const hn::ScalableTag<T> d;
    const hn::CappedTag<T, 1> one;
    constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<hn::ScalableTag<T>>);
    constexpr int wide = 8;
    bool good = true;
    std::int64_t j = 0;
    for (; j + wide * N <= columns; j += wide * N) good &= back<wide, past_cache, depth>(d, f, plane + j, pitch, z, front + j, to + j, to_pitch);
    for (; j + N <= columns; j += N) good &= back<1, past_cache, depth>(d, f, plane + j, pitch, z, front + j, to + j, to_pitch);
    for (; j < columns; ++j) good &= back<1, false, depth>(one, f, plane + j, pitch, z, front + j, to + j, to_pitch);
    return good;
}

template <class T>
HWY_INLINE bool back_to(const LineFactors<T>& f, std::int64_t columns, const T* plane, std::int64_t pitch, const AlongZ<T>& z, T* front, T* to, std::int64_t to_pitch, bool past_cache) {
    if (!front) return past_cache ? back_over<true, Depth::none>(f, columns, plane, pitch, z, front, to, to_pitch) : back_over<false, Depth::none>(f, columns, plane, pitch, z, front, to, to_pitch);
    if (z.first) return past_cache ? back_over<true, Depth::first>(f, columns, plane, pitch, z, front, to, to_pitch) : back_over<false, Depth::first>(f, columns, plane, pitch, z, front, to, to_pitch);
    return past_cache ? back_over<true, Depth::next>(f, columns, plane, pitch, z, front, to, to_pitch) : back_over<false, Depth::next>(f, columns, plane, pitch, z, front, to, to_pitch);
}

template <class D, class T>
HWY_INLINE void one_forwards(D d, T scale, T lower, const T* r, const T* before, T* w) {
    hn::StoreU(hn::NegMulAdd(hn::Set(d, lower), hn::LoadU(d, before), hn::Mul(hn::LoadU(d, r), hn::Set(d, scale))), d, w);
}

template <class T>
HWY_INLINE void forwards(T scale, T lower, std::int64_t count, const T* HWY_RESTRICT r, const T* HWY_RESTRICT before, T* HWY_RESTRICT w) {
    const hn::ScalableTag<T> d;
    const hn::CappedTag<T, 1> one;
    constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<hn::ScalableTag<T>>);
    std::int64_t i = 0;
    for (; i + 4 * N <= count; i += 4 * N)
        for (std::int64_t k = 0; k < 4 * N; k += N) one_forwards(d, scale, lower, r + i + k, before + i + k, w + i + k);
    for (; i + N <= count; i += N) one_forwards(d, scale, lower, r + i, before + i, w + i);
    for (; i < count; ++i) one_forwards(one, scale, lower, r + i, before + i, w + i);
}

template <class D, class T>
HWY_INLINE void one_backwards(D d, T upper, const T* w, const T* after, T* v) {
    hn::StoreU(hn::NegMulAdd(hn::Set(d, upper), hn::LoadU(d, after), hn::LoadU(d, w)), d, v);
}

template <class T>
HWY_INLINE void backwards(T upper, std::int64_t count, const T* w, const T* after, T* v) {
    const hn::ScalableTag<T> d;
    const hn::CappedTag<T, 1> one;
    constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<hn::ScalableTag<T>>);
    std::int64_t i = 0;
    for (; i + 4 * N <= count; i += 4 * N)
        for (std::int64_t k = 0; k < 4 * N; k += N) one_backwards(d, upper, w + i + k, after + i + k, v + i + k);
    for (; i + N <= count; i += N) one_backwards(d, upper, w + i, after + i, v + i);
    for (; i < count; ++i) one_backwards(one, upper, w + i, after + i, v + i);
}

template <class D, class T>
HWY_INLINE void one_backwards_adding(D d, T upper, const T* w, const T* after, T* v, T* sum) {
    const auto own = hn::NegMulAdd(hn::Set(d, upper), hn::LoadU(d, after), hn::LoadU(d, w));
    hn::StoreU(own, d, v);
    hn::StoreU(hn::Add(hn::LoadU(d, sum), own), d, sum);
}

template <class T>
HWY_INLINE void backwards_adding(T upper, std::int64_t count, const T* w, const T* after, T* v, T* sum) {
    const hn::ScalableTag<T> d;
    const hn::CappedTag<T, 1> one;
    constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<hn::ScalableTag<T>>);
    std::int64_t i = 0;
    for (; i + 4 * N <= count; i += 4 * N)
        for (std::int64_t k = 0; k < 4 * N; k += N) one_backwards_adding(d, upper, w + i + k, after + i + k, v + i + k, sum + i + k);
    for (; i + N <= count; i += N) one_backwards_adding(d, upper, w + i, after + i, v + i, sum + i);
    for (; i < count; ++i) one_backwards_adding(one, upper, w + i, after + i, v + i, sum + i);
}

template <class T>
HWY_INLINE bool finite_row(std::int64_t count, const T* values) {
    const hn::ScalableTag<T> d;
    constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<hn::ScalableTag<T>>);
    auto sum = hn::Zero(d);
    std::int64_t i = 0;
    for (; i + N <= count; i += N) sum = hn::MulAdd(hn::LoadU(d, values + i), hn::Zero(d), sum);
    bool good = finite(d, sum);
    for (; i < count; ++i) good = good && values[i] * T(0) == T(0);
    return good;
}

inline std::int64_t strip_rows_f32() { return groups_of<hn::ScalableTag<float>> * static_cast<std::int64_t>(lanes_of<hn::ScalableTag<float>>); }
inline std::int64_t strip_rows_f64() { return groups_of<hn::ScalableTag<double>> * static_cast<std::int64_t>(lanes_of<hn::ScalableTag<double>>); }
inline bool strip_f32(const LineFactors<float>& x, const LineFactors<float>& y, float* s, std::int64_t strip_pitch, std::int64_t first, std::int64_t rows, float* plane, std::int64_t pitch,
                      const ComingRows<float>& coming) {
    return strip(x, y, s, strip_pitch, first, rows, plane, pitch, coming);
}
inline bool strip_f64(const LineFactors<double>& x, const LineFactors<double>& y, double* s, std::int64_t strip_pitch, std::int64_t first, std::int64_t rows, double* plane, std::int64_t pitch,
                      const ComingRows<double>& coming) {
    return strip(x, y, s, strip_pitch, first, rows, plane, pitch, coming);
}
inline bool back_to_f32(const LineFactors<float>& f, std::int64_t columns, const float* plane, std::int64_t pitch, const AlongZ<float>& z, float* front, float* to, std::int64_t to_pitch, bool past_cache) {
    return back_to(f, columns, plane, pitch, z, front, to, to_pitch, past_cache);
}
inline bool back_to_f64(const LineFactors<double>& f, std::int64_t columns, const double* plane, std::int64_t pitch, const AlongZ<double>& z, double* front, double* to, std::int64_t to_pitch, bool past_cache) {
    return back_to(f, columns, plane, pitch, z, front, to, to_pitch, past_cache);
}
inline void forwards_f32(float scale, float lower, std::int64_t count, const float* r, const float* before, float* w) { forwards(scale, lower, count, r, before, w); }
inline void forwards_f64(double scale, double lower, std::int64_t count, const double* r, const double* before, double* w) { forwards(scale, lower, count, r, before, w); }
inline void backwards_f32(float upper, std::int64_t count, const float* w, const float* after, float* v) { backwards(upper, count, w, after, v); }
inline void backwards_f64(double upper, std::int64_t count, const double* w, const double* after, double* v) { backwards(upper, count, w, after, v); }
inline void backwards_adding_f32(float upper, std::int64_t count, const float* w, const float* after, float* v, float* sum) { backwards_adding(upper, count, w, after, v, sum); }
inline void backwards_adding_f64(double upper, std::int64_t count, const double* w, const double* after, double* v, double* sum) { backwards_adding(upper, count, w, after, v, sum); }
inline bool finite_row_f32(std::int64_t count, const float* values) { return finite_row(count, values); }
inline bool finite_row_f64(std::int64_t count, const double* values) { return finite_row(count, values); }

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
