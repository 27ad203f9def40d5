// SPDX-License-Identifier: BSD-3-Clause
// Lines with kept factors of their own, lanes = lines. As factored-inl.h, factors being vectors too. Included once per Highway target.
#include <cstdint>

#include "backends/cpu/mesh/factored-inl.h"
#include "backends/cpu/mesh/kept.hpp"
#include "backends/cpu/simd/transpose-inl.h"
#include "hwy/highway.h"

#if defined(TRIFOLD_BACKENDS_CPU_MESH_KEPT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_MESH_KEPT_INL_H_
#undef TRIFOLD_BACKENDS_CPU_MESH_KEPT_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_MESH_KEPT_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// V vectors of columns.
template <int V, class D, class T>
HWY_INLINE std::int64_t kept_strip(D d, const FactorsOfLines<T>& f, std::int64_t column, std::int64_t row_stride, T* values, std::int8_t* marks) {
    constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<D>);
    hn::Vec<D> w[V];
    for (int v = 0; v < V; ++v) w[v] = hn::Zero(d);
    T* at = values;
    std::int64_t own = column;
    for (std::int64_t i = 0; i < f.n; ++i, at += row_stride, own += f.row_stride)
        for (int v = 0; v < V; ++v) {
            w[v] = hn::NegMulAdd(hn::LoadU(d, f.lower + own + v * N), w[v], hn::Mul(hn::LoadU(d, at + v * N), hn::LoadU(d, f.scale + own + v * N)));
            hn::StoreU(w[v], d, at + v * N);
        }
    at -= row_stride, own -= f.row_stride;
    for (std::int64_t i = f.n - 2; i >= 0; --i) {
        at -= row_stride, own -= f.row_stride;
        for (int v = 0; v < V; ++v) {
            w[v] = hn::NegMulAdd(hn::LoadU(d, f.upper + own + v * N), w[v], hn::LoadU(d, at + v * N));
            hn::StoreU(w[v], d, at + v * N);
        }
    }
    std::int64_t bad = 0;
    for (int v = 0; v < V; ++v) bad += note_not_finite(d, w[v], N, marks ? marks + v * N : nullptr);
    return bad;
}

template <class T>
HWY_INLINE std::int64_t kept_columns(const FactorsOfLines<T>& f, std::int64_t count, std::int64_t row_stride, T* values, std::int8_t* marks) {
    const hn::ScalableTag<T> d;
    const hn::CappedTag<T, 1> one;
    constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<hn::ScalableTag<T>>);
    constexpr int wide = 128 / static_cast<int>(sizeof(T)) / static_cast<int>(N);
    std::int64_t bad = 0, j = 0;
    for (; j + wide * N <= count; j += wide * N) bad += kept_strip<wide>(d, f, j, row_stride, values + j, marks ? marks + j : nullptr);
    for (; j + N <= count; j += N) bad += kept_strip<1>(d, f, j, row_stride, values + j, marks ? marks + j : nullptr);
    for (; j < count; ++j) bad += kept_strip<1>(one, f, j, row_stride, values + j, marks ? marks + j : nullptr);
    return bad;
}

/// N lines one after the other: squares of N lines × N values are transposed in registers, factors too.
template <class D, class T>
HWY_INLINE std::int64_t kept_group(D d, const FactorsOfLines<T>& f, std::int64_t first, std::int64_t line_stride, T* values, std::int8_t* marks, T* buffer) {
    constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<D>);
    const std::int64_t n = f.n, whole = n / N * N, own = first * f.line_stride;
    const auto square = [&](const T* from, std::int64_t apart, hn::Vec<D>(&tile)[N]) HWY_ATTR {
        for (std::int64_t l = 0; l < N; ++l) tile[l] = hn::LoadU(d, from + l * apart);
        transpose(d, tile);
    };
    const auto across = [&](const T* from, std::int64_t apart) HWY_ATTR {
        HWY_ALIGN T lanes[N];
        for (std::int64_t l = 0; l < N; ++l) lanes[l] = from[l * apart];
        return hn::Load(d, lanes);
    };
    hn::Vec<D> w = hn::Zero(d), tile[N], other[N];
    for (std::int64_t i = 0; i < whole; i += N) {
        square(values + i, line_stride, tile);
        square(f.scale + own + i, f.line_stride, other);
        for (std::int64_t k = 0; k < N; ++k) tile[k] = hn::Mul(tile[k], other[k]);
        square(f.lower + own + i, f.line_stride, other);
        for (std::int64_t k = 0; k < N; ++k) {
            w = hn::NegMulAdd(other[k], w, tile[k]);
            hn::Store(w, d, buffer + (i + k) * N);
        }
    }
    for (std::int64_t i = whole; i < n; ++i) {
        w = hn::NegMulAdd(across(f.lower + own + i, f.line_stride), w, hn::Mul(across(values + i, line_stride), across(f.scale + own + i, f.line_stride)));
        hn::Store(w, d, buffer + i * N);
    }
    w = hn::Zero(d);
    for (std::int64_t i = n - 1; i >= whole; --i) {
        w = hn::NegMulAdd(across(f.upper + own + i, f.line_stride), w, hn::Load(d, buffer + i * N));
        hn::Store(w, d, buffer + i * N);
        for (std::int64_t l = 0; l < N; ++l) values[l * line_stride + i] = buffer[i * N + l];
    }
    for (std::int64_t i = whole - N; i >= 0; i -= N) {
        square(f.upper + own + i, f.line_stride, other);
        for (std::int64_t k = N - 1; k >= 0; --k) tile[k] = w = hn::NegMulAdd(other[k], w, hn::Load(d, buffer + (i + k) * N));
        transpose(d, tile);
        for (std::int64_t l = 0; l < N; ++l) hn::StoreU(tile[l], d, values + l * line_stride + i);
    }
    return note_not_finite(d, w, N, marks);
}

template <class T>
HWY_INLINE std::int64_t kept_rows(const FactorsOfLines<T>& f, std::int64_t lines, std::int64_t line_stride, T* values, std::int8_t* marks, T* buffer) {
    const hn::ScalableTag<T> d;
    const hn::CappedTag<T, 1> one;
    constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<hn::ScalableTag<T>>);
    std::int64_t bad = 0, l = 0;
    for (; l + N <= lines; l += N) bad += kept_group(d, f, l, line_stride, values + l * line_stride, marks ? marks + l : nullptr, buffer);
    for (; l < lines; ++l) bad += kept_strip<1>(one, f, l * f.line_stride, 1, values + l * line_stride, marks ? marks + l : nullptr);
    return bad;
}

inline std::int64_t kept_columns_f32(const FactorsOfLines<float>& f, std::int64_t count, std::int64_t row_stride, float* values, std::int8_t* marks) { return kept_columns(f, count, row_stride, values, marks); }
inline std::int64_t kept_columns_f64(const FactorsOfLines<double>& f, std::int64_t count, std::int64_t row_stride, double* values, std::int8_t* marks) { return kept_columns(f, count, row_stride, values, marks); }
inline std::int64_t kept_rows_f32(const FactorsOfLines<float>& f, std::int64_t lines, std::int64_t line_stride, float* values, std::int8_t* marks, float* buffer) {
    return kept_rows(f, lines, line_stride, values, marks, buffer);
}
inline std::int64_t kept_rows_f64(const FactorsOfLines<double>& f, std::int64_t lines, std::int64_t line_stride, double* values, std::int8_t* marks, double* buffer) {
    return kept_rows(f, lines, line_stride, values, marks, buffer);
}

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
