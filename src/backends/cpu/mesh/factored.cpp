// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cpu/mesh/factored.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/mesh/factored.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/mesh/factored-inl.h"

#if HWY_ONCE
#include <algorithm>
#include <cmath>

namespace trifold::cpu {

HWY_EXPORT(columns_f32);
HWY_EXPORT(columns_f64);
HWY_EXPORT(rows_f32);
HWY_EXPORT(rows_f64);

template <class T>
LineFactors<T> factor_line(std::int64_t n, const T* lower, const T* diag, const T* upper) {
    LineFactors<T> f;
    const auto count = static_cast<std::size_t>(n);
    f.n = n;
    for (std::vector<T>* values : {&f.scale, &f.lower, &f.upper}) values->resize((count + 15) / 16 * 16);
    T before = 0;
    bool good = true;
    for (std::size_t i = 0; i < count && good; ++i) {
        const T a = i > 0 ? lower[i] : T(0), c = i + 1 < count ? upper[i] : T(0), from_before = a * before, pivot = diag[i] - from_before;
        const T largest = std::max({std::abs(a), std::abs(diag[i]), std::abs(c)});
        f.scale[i] = 1 / pivot, f.lower[i] = a * f.scale[i], f.upper[i] = before = c * f.scale[i];
        good = std::abs(from_before) + std::abs(pivot) <= 4 * largest && std::isfinite(f.scale[i]) && std::isfinite(f.lower[i]) && std::isfinite(f.upper[i]);
    }
    return good ? f : LineFactors<T>{};
}

template LineFactors<float> factor_line(std::int64_t, const float*, const float*, const float*);
template LineFactors<double> factor_line(std::int64_t, const double*, const double*, const double*);

template <>
std::int64_t solve_columns(const FactorsOfLines<float>& f, std::int64_t columns, std::int64_t row_stride, float* values, std::int8_t* not_finite) {
    return HWY_DYNAMIC_DISPATCH(columns_f32)(f, columns, row_stride, values, not_finite);
}
template <>
std::int64_t solve_columns(const FactorsOfLines<double>& f, std::int64_t columns, std::int64_t row_stride, double* values, std::int8_t* not_finite) {
    return HWY_DYNAMIC_DISPATCH(columns_f64)(f, columns, row_stride, values, not_finite);
}
template <>
std::int64_t solve_rows(const FactorsOfLines<float>& f, std::int64_t lines, std::int64_t line_stride, float* values, std::int8_t* not_finite, float* buffer) {
    return HWY_DYNAMIC_DISPATCH(rows_f32)(f, lines, line_stride, values, not_finite, buffer);
}
template <>
std::int64_t solve_rows(const FactorsOfLines<double>& f, std::int64_t lines, std::int64_t line_stride, double* values, std::int8_t* not_finite, double* buffer) {
    return HWY_DYNAMIC_DISPATCH(rows_f64)(f, lines, line_stride, values, not_finite, buffer);
}

}  // namespace trifold::cpu
#endif
