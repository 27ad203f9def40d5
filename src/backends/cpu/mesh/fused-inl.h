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

/// The i-th part of the coming rows from … to - 1: as many lines of the cache as these are rows. Rows that follow each other in memory are asked for in order.
template <class T>
HWY_INLINE void ask_for(const ComingRows<T>& coming, std::int64_t from, std::int64_t to, std::int64_t i, std::int64_t n) {
    constexpr std::int64_t line = 64 / sizeof(T);
    if (i % line != 0) return;
    for (int c = 0; c < coming.count; ++c) {
        const Coming<T>& rows = coming.rows[static_cast<std::size_t>(c)];
        const bool in_order = rows.row_stride == n;
        const T* p = rows.first + from * rows.row_stride + (in_order ? i * (to - from) : i);
        const std::int64_t step = in_order ? line : rows.row_stride;
        if (coming.second_level)
            for (std::int64_t r = from; r < to; ++r, p += step) prefetch_second_level(p);
        else
            for (std::int64_t r = from; r < to; ++r, p += step) hwy::Prefetch(p);
    }
}

/// w = scale r - lower before. moves: for benchmarks only, of what was loaded without arithmetic.
template <bool moves, class D, class V = hn::Vec<D>>
HWY_INLINE V forward_step(D, V lower, V before, V r, V scale) {
    if constexpr (moves) return hn::Xor(before, r);
    else return hn::NegMulAdd(lower, before, hn::Mul(r, scale));
}

/// v = w - upper after.
template <bool moves, class D, class V = hn::Vec<D>>
HWY_INLINE V backward_step(D, V upper, V after, V w) {
    if constexpr (moves) return hn::Xor(after, w);
    else return hn::NegMulAdd(upper, after, w);
}

/// What a strip becomes on the way back along x.
enum class Depth {
    none,   ///< rows of a plane, forwards along y
    first,  ///< and forwards along z: the first plane
    next
};

template <Depth depth, bool whole, bool past_cache, bool moves = false, class D, class T>
HWY_INLINE bool strip_of(D d, const LineFactors<T>& along_x, const LineFactors<T>& along_y, const AlongZ<T>& along_z, T* HWY_RESTRICT strip, std::int64_t strip_pitch, std::int64_t first,
                         std::int64_t rows, T* last_row, T* HWY_RESTRICT plane, std::int64_t pitch, T* HWY_RESTRICT to, std::int64_t to_pitch, const ComingRows<T>& coming, const Turn& turn = {}) {
    constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<D>), G = groups_of<D>;
    using V = hn::Vec<D>;
    const std::int64_t n = (along_x.n + N - 1) / N * N;
    const T *const scale = along_x.scale.data(), *const lower = along_x.lower.data(), *const upper = along_x.upper.data();
    V w[G];
    for (std::int64_t g = 0; g < G; ++g) w[g] = hn::Zero(d);
    for (std::int64_t i = 0; i < n; i += N) {
        ask_for(coming, 0, G * N / 2, i, along_x.n);
        for (std::int64_t g = 0; g < G; ++g) {
            T* const square = strip + g * N * strip_pitch + i;
            V tile[N];
            load_tile(d, square, strip_pitch, tile);
#pragma GCC unroll 16
            for (std::int64_t k = 0; k < N; ++k) {
                w[g] = forward_step<moves>(d, hn::Set(d, lower[i + k]), w[g], tile[k], hn::Set(d, scale[i + k]));
                hn::StoreU(w[g], d, square + k * strip_pitch);  // as columns now
            }
        }
    }
    const T *const scale_y = along_y.scale.data() + first, *const lower_y = along_y.lower.data() + first;
    const V scale_z = hn::Set(d, along_z.scale), lower_z = hn::Set(d, along_z.lower);
    for (std::int64_t g = 0; g < G; ++g) w[g] = hn::Zero(d);
    for (std::int64_t i = n - N; i >= 0; i -= N) {
        ask_for(coming, G * N / 2, G * N, n - N - i, along_x.n);
        if (turn.wait(n - N - i, n))
            for (std::int64_t j = i + N - 1; j >= 0 && j > i + N - 1 - Turn::columns; j -= 64 / sizeof(T)) __builtin_prefetch(last_row + j, 1);  // another core has them
        V before = first > 0 ? hn::LoadU(d, last_row + i) : hn::Zero(d);
        for (std::int64_t g = 0; g < G; ++g) {
            const T* const square = strip + g * N * strip_pitch + i;
            V tile[N];
#pragma GCC unroll 16
            for (std::int64_t k = N - 1; k >= 0; --k) tile[k] = w[g] = backward_step<moves>(d, hn::Set(d, upper[i + k]), w[g], hn::LoadU(d, square + k * strip_pitch));
            transpose(d, tile);
#pragma GCC unroll 16
            for (std::int64_t k = 0; k < N; ++k) {
                const std::int64_t l = g * N + k;
                if (!whole && l >= rows) break;
                before = forward_step<moves>(d, hn::Set(d, lower_y[l]), before, tile[k], hn::Set(d, scale_y[l]));
                T* const at = plane + l * pitch + i;
                if constexpr (depth == Depth::none && past_cache) {
                    hn::Stream(before, d, at);
                } else if constexpr (depth == Depth::none) {
                    hn::StoreU(before, d, at);
                } else {
                    V deep;
                    if constexpr (depth == Depth::next) deep = forward_step<moves>(d, lower_z, hn::LoadU(d, at), before, scale_z);
                    else deep = hn::Mul(before, scale_z);
                    hn::StoreU(deep, d, at);
                    if constexpr (past_cache) hn::Stream(deep, d, to + l * to_pitch + i);
                    else hn::StoreU(deep, d, to + l * to_pitch + i);
                }
            }
        }
        if constexpr (depth != Depth::none || past_cache) hn::StoreU(before, d, last_row + i);
        turn.tell(n - i, n);
    }
    bool good = true;
    for (std::int64_t g = 0; g < G; ++g) good = good && finite(d, w[g]);
    return good;
}

template <bool past_cache, class T>
HWY_INLINE bool plane_strip_of(const LineFactors<T>& along_x, const LineFactors<T>& along_y, T* strip, std::int64_t strip_pitch, std::int64_t first, std::int64_t rows, T* last_row, T* own, std::int64_t pitch,
                               const ComingRows<T>& coming, const Turn& turn) {
    const hn::ScalableTag<T> d;
    T* const nowhere = nullptr;
    if (rows == groups_of<decltype(d)> * static_cast<std::int64_t>(lanes_of<decltype(d)>))
        return strip_of<Depth::none, true, past_cache>(d, along_x, along_y, AlongZ<T>{}, strip, strip_pitch, first, rows, last_row, own, pitch, nowhere, 0, coming, turn);
    return strip_of<Depth::none, false, past_cache>(d, along_x, along_y, AlongZ<T>{}, strip, strip_pitch, first, rows, last_row, own, pitch, nowhere, 0, coming, turn);
}

template <class T>
HWY_INLINE bool strip(const LineFactors<T>& along_x, const LineFactors<T>& along_y, T* strip, std::int64_t strip_pitch, std::int64_t first, std::int64_t rows, T* plane, std::int64_t pitch,
                      T* last_row, const ComingRows<T>& coming, const Turn& turn) {
    T* const own = plane + first * pitch;
    if (last_row) {
        const bool good = plane_strip_of<true>(along_x, along_y, strip, strip_pitch, first, rows, last_row, own, pitch, coming, turn);
        hwy::FlushStream();  // other threads go on with it
        return good;
    }
    return plane_strip_of<false>(along_x, along_y, strip, strip_pitch, first, rows, own - pitch, own, pitch, coming, turn);
}

template <Depth depth, bool past_cache, class T>
HWY_INLINE bool deep_strip_of(const LineFactors<T>& along_x, const LineFactors<T>& along_y, const AlongZ<T>& along_z, T* strip, std::int64_t strip_pitch, std::int64_t first, std::int64_t rows, T* last_row, T* front,
                              std::int64_t pitch, T* to, std::int64_t to_pitch, const ComingRows<T>& coming) {
    const hn::ScalableTag<T> d;
    if (rows == groups_of<decltype(d)> * static_cast<std::int64_t>(lanes_of<decltype(d)>))
        return strip_of<depth, true, past_cache>(d, along_x, along_y, along_z, strip, strip_pitch, first, rows, last_row, front, pitch, to, to_pitch, coming);
    return strip_of<depth, false, past_cache>(d, along_x, along_y, along_z, strip, strip_pitch, first, rows, last_row, front, pitch, to, to_pitch, coming);
}

template <class T>
HWY_INLINE bool deep_strip(const LineFactors<T>& along_x, const LineFactors<T>& along_y, const AlongZ<T>& along_z, T* strip, std::int64_t strip_pitch, std::int64_t first, std::int64_t rows, T* last_row, T* front,
                           std::int64_t pitch, T* to, std::int64_t to_pitch, bool past_cache, const ComingRows<T>& coming) {
    if (along_z.first) {
        if (past_cache) return deep_strip_of<Depth::first, true>(along_x, along_y, along_z, strip, strip_pitch, first, rows, last_row, front, pitch, to, to_pitch, coming);
        return deep_strip_of<Depth::first, false>(along_x, along_y, along_z, strip, strip_pitch, first, rows, last_row, front, pitch, to, to_pitch, coming);
    }
    if (past_cache) return deep_strip_of<Depth::next, true>(along_x, along_y, along_z, strip, strip_pitch, first, rows, last_row, front, pitch, to, to_pitch, coming);
    return deep_strip_of<Depth::next, false>(along_x, along_y, along_z, strip, strip_pitch, first, rows, last_row, front, pitch, to, to_pitch, coming);
}

template <int V, bool past_cache, class D, class T>
HWY_INLINE bool back(D d, const LineFactors<T>& f, const T* HWY_RESTRICT plane, std::int64_t pitch, T* HWY_RESTRICT to, std::int64_t to_pitch) {
    constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<D>);
    const T* const upper = f.upper.data();
    hn::Vec<D> v[V];
    for (int k = 0; k < V; ++k) v[k] = hn::Zero(d);
    for (std::int64_t i = f.n - 1; i >= 0; --i) {
        const auto c = hn::Set(d, upper[i]);
        for (int k = 0; k < V; ++k) {
            v[k] = hn::NegMulAdd(c, v[k], hn::LoadU(d, plane + i * pitch + k * N));
            if constexpr (past_cache) hn::Stream(v[k], d, to + i * to_pitch + k * N);
            else hn::StoreU(v[k], d, to + i * to_pitch + k * N);
        }
    }
    bool good = true;
    for (int k = 0; k < V; ++k) good = good && finite(d, v[k]);
    return good;
}

template <bool past_cache, class T>
HWY_INLINE bool back_over(const LineFactors<T>& f, std::int64_t columns, const T* plane, std::int64_t pitch, T* to, std::int64_t to_pitch) {
    const hn::ScalableTag<T> d;
    const hn::CappedTag<T, 1> one;
    constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<hn::ScalableTag<T>>);
    constexpr int wide = 8;
    bool good = true;
    std::int64_t j = 0;
    for (; j + wide * N <= columns; j += wide * N) good &= back<wide, past_cache>(d, f, plane + j, pitch, to + j, to_pitch);
    for (; j + N <= columns; j += N) good &= back<1, past_cache>(d, f, plane + j, pitch, to + j, to_pitch);
    for (; j < columns; ++j) good &= back<1, false>(one, f, plane + j, pitch, to + j, to_pitch);
    return good;
}

template <class T>
HWY_INLINE bool back_to(const LineFactors<T>& f, std::int64_t columns, const T* plane, std::int64_t pitch, T* to, std::int64_t to_pitch, bool past_cache) {
    return past_cache ? back_over<true>(f, columns, plane, pitch, to, to_pitch) : back_over<false>(f, columns, plane, pitch, to, to_pitch);
}

template <bool last, bool adds, bool moves, class D, class T>
HWY_INLINE void one_deep(D d, T upper_z, T upper_y, const T* w, T* t, T* v, T* sum) {
    auto deep = hn::LoadU(d, w);
    if constexpr (!last) deep = backward_step<moves>(d, hn::Set(d, upper_z), hn::LoadU(d, t), deep);
    hn::StoreU(deep, d, t);
    const auto own = backward_step<moves>(d, hn::Set(d, upper_y), hn::LoadU(d, v), deep);
    hn::StoreU(own, d, v);
    if constexpr (adds && moves) hn::StoreU(hn::Xor(hn::LoadU(d, sum), own), d, sum);
    else if constexpr (adds) hn::StoreU(hn::Add(hn::LoadU(d, sum), own), d, sum);
}

/// From the end to the beginning: so planes and rows that go backwards are one stream for prefetchers.
template <bool last, bool adds, bool moves = false, class T>
HWY_INLINE void deep_row_of(T upper_z, T upper_y, std::int64_t count, const T* w, T* t, T* v, T* sum) {
    const hn::ScalableTag<T> d;
    const hn::CappedTag<T, 1> one;
    constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<hn::ScalableTag<T>>);
    std::int64_t i = count;
    for (; i % N != 0; --i) one_deep<last, adds, moves>(one, upper_z, upper_y, w + i - 1, t + i - 1, v + i - 1, sum + i - 1);
    for (; i >= 4 * N; i -= 4 * N)
        for (std::int64_t k = N; k <= 4 * N; k += N) one_deep<last, adds, moves>(d, upper_z, upper_y, w + i - k, t + i - k, v + i - k, sum + i - k);
    for (; i > 0; i -= N) one_deep<last, adds, moves>(d, upper_z, upper_y, w + i - N, t + i - N, v + i - N, sum + i - N);
}

template <class T>
HWY_INLINE void deep_row(T upper_z, T upper_y, bool last, std::int64_t count, const T* w, T* t, T* v, T* sum) {
    if (last && sum) deep_row_of<true, true>(upper_z, upper_y, count, w, t, v, sum);
    else if (last) deep_row_of<true, false>(upper_z, upper_y, count, w, t, v, v);
    else if (sum) deep_row_of<false, true>(upper_z, upper_y, count, w, t, v, sum);
    else deep_row_of<false, false>(upper_z, upper_y, count, w, t, v, v);
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
                      float* last_row, const ComingRows<float>& coming, const Turn& turn) {
    return strip(x, y, s, strip_pitch, first, rows, plane, pitch, last_row, coming, turn);
}
inline bool strip_f64(const LineFactors<double>& x, const LineFactors<double>& y, double* s, std::int64_t strip_pitch, std::int64_t first, std::int64_t rows, double* plane, std::int64_t pitch,
                      double* last_row, const ComingRows<double>& coming, const Turn& turn) {
    return strip(x, y, s, strip_pitch, first, rows, plane, pitch, last_row, coming, turn);
}
inline bool back_to_f32(const LineFactors<float>& f, std::int64_t columns, const float* plane, std::int64_t pitch, float* to, std::int64_t to_pitch, bool past_cache) {
    return back_to(f, columns, plane, pitch, to, to_pitch, past_cache);
}
inline bool deep_strip_f32(const LineFactors<float>& x, const LineFactors<float>& y, const AlongZ<float>& z, float* s, std::int64_t strip_pitch, std::int64_t first, std::int64_t rows, float* last_row, float* front,
                           std::int64_t pitch, float* to, std::int64_t to_pitch, bool past_cache, const ComingRows<float>& coming) {
    return deep_strip(x, y, z, s, strip_pitch, first, rows, last_row, front, pitch, to, to_pitch, past_cache, coming);
}
inline void deep_row_f32(float upper_z, float upper_y, bool last, std::int64_t count, const float* w, float* t, float* v, float* sum) { deep_row(upper_z, upper_y, last, count, w, t, v, sum); }
inline bool back_to_f64(const LineFactors<double>& f, std::int64_t columns, const double* plane, std::int64_t pitch, double* to, std::int64_t to_pitch, bool past_cache) {
    return back_to(f, columns, plane, pitch, to, to_pitch, past_cache);
}
inline bool deep_strip_f64(const LineFactors<double>& x, const LineFactors<double>& y, const AlongZ<double>& z, double* s, std::int64_t strip_pitch, std::int64_t first, std::int64_t rows, double* last_row, double* front,
                           std::int64_t pitch, double* to, std::int64_t to_pitch, bool past_cache, const ComingRows<double>& coming) {
    return deep_strip(x, y, z, s, strip_pitch, first, rows, last_row, front, pitch, to, to_pitch, past_cache, coming);
}
inline void deep_row_f64(double upper_z, double upper_y, bool last, std::int64_t count, const double* w, double* t, double* v, double* sum) { deep_row(upper_z, upper_y, last, count, w, t, v, sum); }
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
