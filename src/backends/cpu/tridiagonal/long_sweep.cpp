// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cpu/tridiagonal/long_job.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/tridiagonal/long_sweep.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/tridiagonal/long_sweep-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {

template <class T>
bool sweep(const LongSweep<T>& job, T* scratch) {
    const bool finite = LongSweeper<hn::ScalableTag<T>>(job, scratch).run();
    if (job.stream) hwy::FlushStream();
    return finite;
}

bool sweep_f32(const LongSweep<float>& job, float* scratch) { return sweep(job, scratch); }
bool sweep_f64(const LongSweep<double>& job, double* scratch) { return sweep(job, scratch); }
void gather_f32(const LaneGroup<float>& group, const LaneOperand<float>& from, std::int64_t first, std::int64_t count, float* lines) {
    gather_tiles(hn::ScalableTag<float>(), group, from, first, count, lines);
}
void gather_f64(const LaneGroup<double>& group, const LaneOperand<double>& from, std::int64_t first, std::int64_t count, double* lines) {
    gather_tiles(hn::ScalableTag<double>(), group, from, first, count, lines);
}
void halo_f32(const float* lines, const float* kept, std::int64_t rows, float* w) { halo_lines(hn::ScalableTag<float>(), lines, kept, rows, w); }
void halo_f64(const double* lines, const double* kept, std::int64_t rows, double* w) { halo_lines(hn::ScalableTag<double>(), lines, kept, rows, w); }

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trifold::cpu {

HWY_EXPORT(sweep_f32);
HWY_EXPORT(sweep_f64);
HWY_EXPORT(gather_f32);
HWY_EXPORT(gather_f64);
HWY_EXPORT(halo_f32);
HWY_EXPORT(halo_f64);

bool sweep_long(const LongSweep<float>& job, float* scratch) { return HWY_DYNAMIC_DISPATCH(sweep_f32)(job, scratch); }
bool sweep_long(const LongSweep<double>& job, double* scratch) { return HWY_DYNAMIC_DISPATCH(sweep_f64)(job, scratch); }
void gather_lines(const LaneGroup<float>& group, const LaneOperand<float>& from, std::int64_t first, std::int64_t count, float* lines) {
    HWY_DYNAMIC_DISPATCH(gather_f32)(group, from, first, count, lines);
}
void gather_lines(const LaneGroup<double>& group, const LaneOperand<double>& from, std::int64_t first, std::int64_t count, double* lines) {
    HWY_DYNAMIC_DISPATCH(gather_f64)(group, from, first, count, lines);
}
void halo_long(const float* lines, const float* kept, std::int64_t rows, float* w) { HWY_DYNAMIC_DISPATCH(halo_f32)(lines, kept, rows, w); }
void halo_long(const double* lines, const double* kept, std::int64_t rows, double* w) { HWY_DYNAMIC_DISPATCH(halo_f64)(lines, kept, rows, w); }

}  // namespace trifold::cpu
#endif
