// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cpu/tridiagonal/batch_kernel.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/tridiagonal/batch_kernel.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/tridiagonal/batch_block-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {

template <class T>
void run(const BatchJob<T>& job, std::int64_t first, std::int64_t last, T* scratch, void* sink) {
    const std::int64_t width = job.block_lines * BatchJob<T>::line;
    T* const buffers = scratch + job.scratch_elements() - Block<T>::buffer_elements(width);
    Block<T>(job, scratch, buffers, sink).solve(first, last);
}

void run_f32(const BatchJob<float>& job, std::int64_t first, std::int64_t last, float* scratch, void* sink) { run(job, first, last, scratch, sink); }
void run_f64(const BatchJob<double>& job, std::int64_t first, std::int64_t last, double* scratch, void* sink) { run(job, first, last, scratch, sink); }

std::int64_t vector_bytes() { return static_cast<std::int64_t>(sizeof(double) * lanes_of<hn::ScalableTag<double>>); }

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trifold::cpu {

HWY_EXPORT(run_f32);
HWY_EXPORT(run_f64);
HWY_EXPORT(vector_bytes);

std::int64_t batch_vector_bytes() { return HWY_DYNAMIC_DISPATCH(vector_bytes)(); }

void solve_blocks(const BatchJob<float>& job, std::int64_t first, std::int64_t last, float* scratch, void* sink) {
    HWY_DYNAMIC_DISPATCH(run_f32)(job, first, last, scratch, sink);
}

void solve_blocks(const BatchJob<double>& job, std::int64_t first, std::int64_t last, double* scratch, void* sink) {
    HWY_DYNAMIC_DISPATCH(run_f64)(job, first, last, scratch, sink);
}

}  // namespace trifold::cpu
#endif
