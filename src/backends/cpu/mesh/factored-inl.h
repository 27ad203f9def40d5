// SPDX-License-Identifier: BSD-3-Clause
// Lines with one factored matrix, lanes = lines. See factored.hpp. Included once per Highway target.
//
// Columns side by side: strips of a few vectors go down and up again, w in place of r; a strip of 256 rows stays in the first-level
// cache. Rows side by side: squares of N lines × N values are transposed in registers on the way down and on the way back up; w waits
// in a buffer that stays in the first-level cache. Two groups of lines at a time: each is one chain of multiply-adds.
#include <cstdint>

#include "backends/cpu/mesh/factored.hpp"
#include "backends/cpu/simd/transpose-inl.h"
#include "hwy/highway.h"

#if defined(TRIFOLD_BACKENDS_CPU_MESH_FACTORED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_MESH_FACTORED_INL_H_
#undef TRIFOLD_BACKENDS_CPU_MESH_FACTORED_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_MESH_FACTORED_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Notes which of the lanes are not finite, and counts them.
template <class D, class V>
HWY_INLINE std::int64_t note_not_finite(D d, V first, std::int64_t count, std::int8_t* marks) {
    using T = hn::TFromD<D>;
    const V zero = hn::Zero(d);
    const bool all = hn::AllTrue(d, hn::Eq(hn::Mul(first, zero), zero));
    if (all && !marks) return 0;
    HWY_ALIGN T values[lanes_of<D>];
    hn::Store(first, d, values);
    std::int64_t bad = 0;
    for (std::int64_t k = 0; k < count; ++k) {
        const bool broken = !(values[k] * T(0) == T(0));
        bad += broken;
        if (marks) marks[k] = broken;
    }
    return bad;
}

/// V vectors of columns.
template <int V, class D, class T>
HWY_INLINE std::int64_t strip(D d, const LineFactors<T>& f, std::int64_t row_stride, T* values, std::int8_t* marks) {
    constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<D>);
    const std::int64_t n = f.n;
    const T *const scale = f.scale.data(), *const lower = f.lower.data(), *const upper = f.upper.data();
    hn::Vec<D> w[V];
    for (int v = 0; v < V; ++v) w[v] = hn::Zero(d);
    T* at = values;
    for (std::int64_t i = 0; i < n; ++i, at += row_stride) {
        const auto s = hn::Set(d, scale[i]), a = hn::Set(d, lower[i]);
        for (int v = 0; v < V; ++v) {
            w[v] = hn::NegMulAdd(a, w[v], hn::Mul(hn::LoadU(d, at + v * N), s));
            hn::StoreU(w[v], d, at + v * N);
        }
    }
    at -= row_stride;
    for (std::int64_t i = n - 2; i >= 0; --i) {
        at -= row_stride;
        const auto c = hn::Set(d, upper[i]);
        for (int v = 0; v < V; ++v) {
            w[v] = hn::NegMulAdd(c, w[v], hn::LoadU(d, at + v * N));
            hn::StoreU(w[v], d, at + v * N);
        }
    }
    std::int64_t bad = 0;
    for (int v = 0; v < V; ++v) bad += note_not_finite(d, w[v], N, marks ? marks + v * N : nullptr);
    return bad;
}

template <class T>
HWY_INLINE std::int64_t columns(const LineFactors<T>& f, std::int64_t count, std::int64_t row_stride, T* values, std::int8_t* marks) {
    const hn::ScalableTag<T> d;
    const hn::CappedTag<T, 1> one;
    constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<hn::ScalableTag<T>>);
    constexpr int wide = 128 / static_cast<int>(sizeof(T)) / static_cast<int>(N);  // two lines of cache
    std::int64_t bad = 0, j = 0;
    for (; j + wide * N <= count; j += wide * N) bad += strip<wide>(d, f, row_stride, values + j, marks ? marks + j : nullptr);
    for (; j + N <= count; j += N) bad += strip<1>(d, f, row_stride, values + j, marks ? marks + j : nullptr);
    for (; j < count; ++j) bad += strip<1>(one, f, row_stride, values + j, marks ? marks + j : nullptr);
    return bad;
}

/// G groups of N lines each.
template <int G, class D, class T>
HWY_INLINE std::int64_t groups(D d, const LineFactors<T>& f, std::int64_t line_stride, T* values, std::int8_t* marks, T* buffer) {
    constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<D>);
    const std::int64_t n = f.n, whole = n / N * N;
    const T *const scale = f.scale.data(), *const lower = f.lower.data(), *const upper = f.upper.data();
    hn::Vec<D> w[G];
    for (int g = 0; g < G; ++g) w[g] = hn::Zero(d);
    const auto at = [&](int g, std::int64_t i) { return buffer + (i * G + g) * N; };
    const auto down = [&](int g, std::int64_t i, hn::Vec<D> r) HWY_ATTR {
        w[g] = hn::NegMulAdd(hn::Set(d, lower[i]), w[g], hn::Mul(r, hn::Set(d, scale[i])));
        hn::Store(w[g], d, at(g, i));
    };
    for (std::int64_t i = 0; i < whole; i += N)
        for (int g = 0; g < G; ++g) {
            hn::Vec<D> tile[N];
            for (std::int64_t l = 0; l < N; ++l) tile[l] = hn::LoadU(d, values + (g * N + l) * line_stride + i);
            transpose(d, tile);
            for (std::int64_t k = 0; k < N; ++k) down(g, i + k, tile[k]);
        }
    for (std::int64_t i = whole; i < n; ++i)
        for (int g = 0; g < G; ++g) {
            for (std::int64_t l = 0; l < N; ++l) at(g, i)[l] = values[(g * N + l) * line_stride + i];
            down(g, i, hn::Load(d, at(g, i)));
        }
    for (int g = 0; g < G; ++g) w[g] = hn::Zero(d);
    const auto up = [&](int g, std::int64_t i) HWY_ATTR { w[g] = hn::NegMulAdd(hn::Set(d, upper[i]), w[g], hn::Load(d, at(g, i))); };
    for (std::int64_t i = n - 1; i >= whole; --i)
        for (int g = 0; g < G; ++g) {
            up(g, i);
            hn::Store(w[g], d, at(g, i));
            for (std::int64_t l = 0; l < N; ++l) values[(g * N + l) * line_stride + i] = at(g, i)[l];
        }
    for (std::int64_t i = whole - N; i >= 0; i -= N)
        for (int g = 0; g < G; ++g) {
            hn::Vec<D> tile[N];
            for (std::int64_t k = N - 1; k >= 0; --k) {
                up(g, i + k);
                tile[k] = w[g];
            }
            transpose(d, tile);
            for (std::int64_t l = 0; l < N; ++l) hn::StoreU(tile[l], d, values + (g * N + l) * line_stride + i);
        }
    std::int64_t bad = 0;
    for (int g = 0; g < G; ++g) bad += note_not_finite(d, w[g], N, marks ? marks + g * N : nullptr);
    return bad;
}

template <class T>
HWY_INLINE std::int64_t rows(const LineFactors<T>& f, std::int64_t lines, std::int64_t line_stride, T* values, std::int8_t* marks, T* buffer) {
    const hn::ScalableTag<T> d;
    const hn::CappedTag<T, 1> one;
    constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<hn::ScalableTag<T>>);
    std::int64_t bad = 0, l = 0;
    for (; l + 2 * N <= lines; l += 2 * N) bad += groups<2>(d, f, line_stride, values + l * line_stride, marks ? marks + l : nullptr, buffer);
    for (; l + N <= lines; l += N) bad += groups<1>(d, f, line_stride, values + l * line_stride, marks ? marks + l : nullptr, buffer);
    for (; l < lines; ++l) bad += strip<1>(one, f, 1, values + l * line_stride, marks ? marks + l : nullptr);
    return bad;
}

inline std::int64_t columns_f32(const LineFactors<float>& f, std::int64_t count, std::int64_t row_stride, float* values, std::int8_t* marks) { return columns(f, count, row_stride, values, marks); }
inline std::int64_t columns_f64(const LineFactors<double>& f, std::int64_t count, std::int64_t row_stride, double* values, std::int8_t* marks) { return columns(f, count, row_stride, values, marks); }
inline std::int64_t rows_f32(const LineFactors<float>& f, std::int64_t lines, std::int64_t line_stride, float* values, std::int8_t* marks, float* buffer) {
    return rows(f, lines, line_stride, values, marks, buffer);
}
inline std::int64_t rows_f64(const LineFactors<double>& f, std::int64_t lines, std::int64_t line_stride, double* values, std::int8_t* marks, double* buffer) {
    return rows(f, lines, line_stride, values, marks, buffer);
}

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
