// SPDX-License-Identifier: BSD-3-Clause
// Lines with factored matrices, lanes = lines; own: a matrix each, else one for all. See factored.hpp. Included once per Highway target.
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

/// One factor of value i in vectors of lanes side by side.
template <bool own, class D>
struct FactorBeside {
    using T = hn::TFromD<D>;
    const T* first;
    hn::Vec<D> one;

    HWY_INLINE FactorBeside(D d, const FactorsOfLines<T>& f, const T* factor, std::int64_t i, std::int64_t column) {
        if constexpr (own) first = factor + i * f.row_stride + column;
        else one = hn::Set(d, factor[i]);
    }
    HWY_INLINE hn::Vec<D> at(D d, int v) const {
        if constexpr (own) return hn::LoadU(d, first + v * static_cast<std::int64_t>(lanes_of<D>));
        else return one;
    }
};

/// Values i … i + N - 1 of N lines one after the other, line after line in lanes.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void turned(D d, const T* from, std::int64_t line_stride, hn::Vec<D>* tile) {
    for (std::int64_t l = 0; l < static_cast<std::int64_t>(lanes_of<D>); ++l) tile[l] = hn::LoadU(d, from + l * line_stride);
    transpose(d, tile);
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> across(D d, const T* from, std::int64_t line_stride) {
    HWY_ALIGN T lanes[lanes_of<D>];
    for (std::int64_t l = 0; l < static_cast<std::int64_t>(lanes_of<D>); ++l) lanes[l] = from[l * line_stride];
    return hn::Load(d, lanes);
}

/// One factor of values i … i + N - 1, for lines one after the other.
template <bool own, class D>
struct FactorSquare {
    using T = hn::TFromD<D>;
    const T* one;
    hn::Vec<D> square[own ? lanes_of<D> : 1];

    HWY_INLINE FactorSquare(D d, const FactorsOfLines<T>& f, const T* factor, std::int64_t line, std::int64_t i) : one(factor + i) {
        if constexpr (own) turned(d, factor + line * f.line_stride + i, f.line_stride, square);
    }
    HWY_INLINE hn::Vec<D> at(D d, std::int64_t k) const {
        if constexpr (own) return square[k];
        else return hn::Set(d, one[k]);
    }
};

/// V vectors of columns. column: of the factors.
template <int V, bool own, class D, class T>
HWY_INLINE std::int64_t strip(D d, const FactorsOfLines<T>& f, std::int64_t column, std::int64_t row_stride, T* values, std::int8_t* marks) {
    constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<D>);
    const std::int64_t n = f.n;
    const T *const scale = f.scale, *const lower = f.lower, *const upper = f.upper;
    using Beside = FactorBeside<own, D>;
    hn::Vec<D> w[V];
    for (int v = 0; v < V; ++v) w[v] = hn::Zero(d);
    T* at = values;
    for (std::int64_t i = 0; i < n; ++i, at += row_stride) {
        const Beside s(d, f, scale, i, column), a(d, f, lower, i, column);
        for (int v = 0; v < V; ++v) {
            w[v] = hn::NegMulAdd(a.at(d, v), w[v], hn::Mul(hn::LoadU(d, at + v * N), s.at(d, v)));
            hn::StoreU(w[v], d, at + v * N);
        }
    }
    at -= row_stride;
    for (std::int64_t i = n - 2; i >= 0; --i) {
        at -= row_stride;
        const Beside c(d, f, upper, i, column);
        for (int v = 0; v < V; ++v) {
            w[v] = hn::NegMulAdd(c.at(d, v), w[v], hn::LoadU(d, at + v * N));
            hn::StoreU(w[v], d, at + v * N);
        }
    }
    std::int64_t bad = 0;
    for (int v = 0; v < V; ++v) bad += note_not_finite(d, w[v], N, marks ? marks + v * N : nullptr);
    return bad;
}

template <bool own, class T>
HWY_INLINE std::int64_t columns(const FactorsOfLines<T>& f, std::int64_t count, std::int64_t row_stride, T* values, std::int8_t* marks) {
    const hn::ScalableTag<T> d;
    const hn::CappedTag<T, 1> one;
    constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<hn::ScalableTag<T>>);
    constexpr int wide = 128 / static_cast<int>(sizeof(T)) / static_cast<int>(N);  // two lines of cache
    std::int64_t bad = 0, j = 0;
    for (; j + wide * N <= count; j += wide * N) bad += strip<wide, own>(d, f, j, row_stride, values + j, marks ? marks + j : nullptr);
    for (; j + N <= count; j += N) bad += strip<1, own>(d, f, j, row_stride, values + j, marks ? marks + j : nullptr);
    for (; j < count; ++j) bad += strip<1, own>(one, f, j, row_stride, values + j, marks ? marks + j : nullptr);
    return bad;
}

/// G groups of N lines each, the first of which is `line` of the factors.
template <int G, bool own, class D, class T>
HWY_INLINE std::int64_t groups(D d, const FactorsOfLines<T>& f, std::int64_t line, std::int64_t line_stride, T* values, std::int8_t* marks, T* buffer) {
    constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<D>);
    const std::int64_t n = f.n, whole = n / N * N;
    const T *const scale = f.scale, *const lower = f.lower, *const upper = f.upper;
    const auto at = [&](int g, std::int64_t i) { return buffer + (i * G + g) * N; };
    const auto place = [&](int g, std::int64_t i) { return values + g * N * line_stride + i; };
    const auto factor = [&](const T* of, int g, std::int64_t i) HWY_ATTR {
        if constexpr (own) return across(d, of + (line + g * N) * f.line_stride + i, f.line_stride);
        else return hn::Set(d, of[i]);
    };
    using Square = FactorSquare<own, D>;
    hn::Vec<D> w[G];
    for (int g = 0; g < G; ++g) w[g] = hn::Zero(d);
    for (std::int64_t i = 0; i < whole; i += N)
        for (int g = 0; g < G; ++g) {
            hn::Vec<D> tile[N];
            turned(d, place(g, i), line_stride, tile);
            const Square s(d, f, scale, line + g * N, i);
            // Three squares are more than there are registers; one factor for all lines is multiplied in the shadow of the chain.
            for (std::int64_t k = 0; own && k < N; ++k) tile[k] = hn::Mul(tile[k], s.at(d, k));
            const Square a(d, f, lower, line + g * N, i);
            for (std::int64_t k = 0; k < N; ++k) {
                w[g] = hn::NegMulAdd(a.at(d, k), w[g], own ? tile[k] : hn::Mul(tile[k], s.at(d, k)));
                hn::Store(w[g], d, at(g, i + k));
            }
        }
    for (std::int64_t i = whole; i < n; ++i)
        for (int g = 0; g < G; ++g) {
            w[g] = hn::NegMulAdd(factor(lower, g, i), w[g], hn::Mul(across(d, place(g, i), line_stride), factor(scale, g, i)));
            hn::Store(w[g], d, at(g, i));
        }
    for (int g = 0; g < G; ++g) w[g] = hn::Zero(d);
    for (std::int64_t i = n - 1; i >= whole; --i)
        for (int g = 0; g < G; ++g) {
            w[g] = hn::NegMulAdd(factor(upper, g, i), w[g], hn::Load(d, at(g, i)));
            hn::Store(w[g], d, at(g, i));
            for (std::int64_t l = 0; l < N; ++l) place(g, i)[l * line_stride] = at(g, i)[l];
        }
    for (std::int64_t i = whole - N; i >= 0; i -= N)
        for (int g = 0; g < G; ++g) {
            const Square c(d, f, upper, line + g * N, i);
            hn::Vec<D> tile[N];
            for (std::int64_t k = N - 1; k >= 0; --k) tile[k] = w[g] = hn::NegMulAdd(c.at(d, k), w[g], hn::Load(d, at(g, i + k)));
            transpose(d, tile);
            for (std::int64_t l = 0; l < N; ++l) hn::StoreU(tile[l], d, place(g, i) + l * line_stride);
        }
    std::int64_t bad = 0;
    for (int g = 0; g < G; ++g) bad += note_not_finite(d, w[g], N, marks ? marks + g * N : nullptr);
    return bad;
}

template <bool own, class T>
HWY_INLINE std::int64_t rows(const FactorsOfLines<T>& f, std::int64_t lines, std::int64_t line_stride, T* values, std::int8_t* marks, T* buffer) {
    const hn::ScalableTag<T> d;
    const hn::CappedTag<T, 1> one;
    constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<hn::ScalableTag<T>>);
    std::int64_t bad = 0, l = 0;
    for (; !own && l + 2 * N <= lines; l += 2 * N) bad += groups<2, false>(d, f, l, line_stride, values + l * line_stride, marks ? marks + l : nullptr, buffer);
    for (; l + N <= lines; l += N) bad += groups<1, own>(d, f, l, line_stride, values + l * line_stride, marks ? marks + l : nullptr, buffer);
    for (; l < lines; ++l) bad += strip<1, own>(one, f, l * f.line_stride, 1, values + l * line_stride, marks ? marks + l : nullptr);
    return bad;
}

template <class T>
HWY_INLINE std::int64_t columns_of(const FactorsOfLines<T>& f, std::int64_t count, std::int64_t row_stride, T* values, std::int8_t* marks) {
    return f.one_for_all ? columns<false>(f, count, row_stride, values, marks) : columns<true>(f, count, row_stride, values, marks);
}
template <class T>
HWY_INLINE std::int64_t rows_of(const FactorsOfLines<T>& f, std::int64_t lines, std::int64_t line_stride, T* values, std::int8_t* marks, T* buffer) {
    return f.one_for_all ? rows<false>(f, lines, line_stride, values, marks, buffer) : rows<true>(f, lines, line_stride, values, marks, buffer);
}

inline std::int64_t columns_f32(const FactorsOfLines<float>& f, std::int64_t count, std::int64_t row_stride, float* values, std::int8_t* marks) { return columns_of(f, count, row_stride, values, marks); }
inline std::int64_t columns_f64(const FactorsOfLines<double>& f, std::int64_t count, std::int64_t row_stride, double* values, std::int8_t* marks) { return columns_of(f, count, row_stride, values, marks); }
inline std::int64_t rows_f32(const FactorsOfLines<float>& f, std::int64_t lines, std::int64_t line_stride, float* values, std::int8_t* marks, float* buffer) {
    return rows_of(f, lines, line_stride, values, marks, buffer);
}
inline std::int64_t rows_f64(const FactorsOfLines<double>& f, std::int64_t lines, std::int64_t line_stride, double* values, std::int8_t* marks, double* buffer) {
    return rows_of(f, lines, line_stride, values, marks, buffer);
}

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
