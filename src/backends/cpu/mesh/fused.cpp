// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cpu/mesh/fused.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/mesh/fused.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/mesh/fused-inl.h"

#if HWY_ONCE
namespace trifold::cpu {

HWY_EXPORT(strip_rows_f32);
HWY_EXPORT(strip_rows_f64);
HWY_EXPORT(strip_f32);
HWY_EXPORT(strip_f64);
HWY_EXPORT(back_to_f32);
HWY_EXPORT(back_to_f64);
HWY_EXPORT(deep_strip_f32);
HWY_EXPORT(deep_strip_f64);
HWY_EXPORT(deep_row_f32);
HWY_EXPORT(deep_row_f64);
HWY_EXPORT(forwards_f32);
HWY_EXPORT(forwards_f64);
HWY_EXPORT(backwards_f32);
HWY_EXPORT(backwards_f64);
HWY_EXPORT(backwards_adding_f32);
HWY_EXPORT(backwards_adding_f64);
HWY_EXPORT(finite_row_f32);
HWY_EXPORT(finite_row_f64);

template <>
std::int64_t strip_rows<float>() noexcept { return HWY_DYNAMIC_DISPATCH(strip_rows_f32)(); }
template <>
std::int64_t strip_rows<double>() noexcept { return HWY_DYNAMIC_DISPATCH(strip_rows_f64)(); }

template <>
bool rows_then_forwards(const LineFactors<float>& x, const LineFactors<float>& y, float* strip, std::int64_t strip_pitch, std::int64_t first, std::int64_t rows, float* plane, std::int64_t pitch,
                        float* last_row, const ComingRows<float>& coming, const Turn& turn) {
    return HWY_DYNAMIC_DISPATCH(strip_f32)(x, y, strip, strip_pitch, first, rows, plane, pitch, last_row, coming, turn);
}
template <>
bool rows_then_forwards(const LineFactors<double>& x, const LineFactors<double>& y, double* strip, std::int64_t strip_pitch, std::int64_t first, std::int64_t rows, double* plane, std::int64_t pitch,
                        double* last_row, const ComingRows<double>& coming, const Turn& turn) {
    return HWY_DYNAMIC_DISPATCH(strip_f64)(x, y, strip, strip_pitch, first, rows, plane, pitch, last_row, coming, turn);
}
template <>
bool backwards_to(const LineFactors<float>& y, std::int64_t columns, const float* plane, std::int64_t pitch, float* to, std::int64_t to_pitch, bool past_cache) {
    return HWY_DYNAMIC_DISPATCH(back_to_f32)(y, columns, plane, pitch, to, to_pitch, past_cache);
}
template <>
bool rows_then_deep(const LineFactors<float>& x, const LineFactors<float>& y, const AlongZ<float>& z, float* strip, std::int64_t strip_pitch, std::int64_t first, std::int64_t rows, float* last_row, float* front,
                    std::int64_t pitch, float* to, std::int64_t to_pitch, bool past_cache, const ComingRows<float>& coming) {
    return HWY_DYNAMIC_DISPATCH(deep_strip_f32)(x, y, z, strip, strip_pitch, first, rows, last_row, front, pitch, to, to_pitch, past_cache, coming);
}
template <>
void row_deep_backwards(float upper_z, float upper_y, bool last, std::int64_t count, const float* w, float* t, float* v, float* sum) {
    HWY_DYNAMIC_DISPATCH(deep_row_f32)(upper_z, upper_y, last, count, w, t, v, sum);
}
template <>
bool backwards_to(const LineFactors<double>& y, std::int64_t columns, const double* plane, std::int64_t pitch, double* to, std::int64_t to_pitch, bool past_cache) {
    return HWY_DYNAMIC_DISPATCH(back_to_f64)(y, columns, plane, pitch, to, to_pitch, past_cache);
}
template <>
bool rows_then_deep(const LineFactors<double>& x, const LineFactors<double>& y, const AlongZ<double>& z, double* strip, std::int64_t strip_pitch, std::int64_t first, std::int64_t rows, double* last_row, double* front,
                    std::int64_t pitch, double* to, std::int64_t to_pitch, bool past_cache, const ComingRows<double>& coming) {
    return HWY_DYNAMIC_DISPATCH(deep_strip_f64)(x, y, z, strip, strip_pitch, first, rows, last_row, front, pitch, to, to_pitch, past_cache, coming);
}
template <>
void row_deep_backwards(double upper_z, double upper_y, bool last, std::int64_t count, const double* w, double* t, double* v, double* sum) {
    HWY_DYNAMIC_DISPATCH(deep_row_f64)(upper_z, upper_y, last, count, w, t, v, sum);
}
template <>
void row_forwards(float scale, float lower, std::int64_t count, const float* r, const float* before, float* w) { HWY_DYNAMIC_DISPATCH(forwards_f32)(scale, lower, count, r, before, w); }
template <>
void row_forwards(double scale, double lower, std::int64_t count, const double* r, const double* before, double* w) { HWY_DYNAMIC_DISPATCH(forwards_f64)(scale, lower, count, r, before, w); }
template <>
void row_backwards(float upper, std::int64_t count, const float* w, const float* after, float* v) { HWY_DYNAMIC_DISPATCH(backwards_f32)(upper, count, w, after, v); }
template <>
void row_backwards(double upper, std::int64_t count, const double* w, const double* after, double* v) { HWY_DYNAMIC_DISPATCH(backwards_f64)(upper, count, w, after, v); }
template <>
void row_backwards_adding(float upper, std::int64_t count, const float* w, const float* after, float* v, float* sum) { HWY_DYNAMIC_DISPATCH(backwards_adding_f32)(upper, count, w, after, v, sum); }
template <>
bool all_finite(std::int64_t count, const float* values) { return HWY_DYNAMIC_DISPATCH(finite_row_f32)(count, values); }
template <>
void row_backwards_adding(double upper, std::int64_t count, const double* w, const double* after, double* v, double* sum) { HWY_DYNAMIC_DISPATCH(backwards_adding_f64)(upper, count, w, after, v, sum); }
template <>
bool all_finite(std::int64_t count, const double* values) { return HWY_DYNAMIC_DISPATCH(finite_row_f64)(count, values); }

}  // namespace trifold::cpu
#endif
