// SPDX-License-Identifier: BSD-3-Clause
#include "bench/harness/batch_order.hpp"

#include <omp.h>

#include <chrono>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/harness/batch_order.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/tridiagonal/batch_block-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trifold::bench::HWY_NAMESPACE {

template <class T>
void move_blocks(const cpu::BatchJob<T>& job, std::int64_t first, std::int64_t last, T* scratch) {
    using Block = cpu::HWY_NAMESPACE::Block<T, false>;
    T* const buffers = scratch + job.scratch_elements() - Block::buffer_elements(job.block_lines * cpu::BatchJob<T>::line);
    Block(job, scratch, buffers, nullptr).solve(first, last);
}

void move_f32(const cpu::BatchJob<float>& job, std::int64_t first, std::int64_t last, float* scratch) { move_blocks(job, first, last, scratch); }
void move_f64(const cpu::BatchJob<double>& job, std::int64_t first, std::int64_t last, double* scratch) { move_blocks(job, first, last, scratch); }

}  // namespace trifold::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backends/cpu/tridiagonal/batch.hpp"
#include "backends/cpu/tridiagonal/batch_plan.hpp"

namespace trifold::bench {
namespace {

HWY_EXPORT(move_f32);
HWY_EXPORT(move_f64);

void move(const cpu::BatchJob<float>& job, std::int64_t first, std::int64_t last, float* scratch) { HWY_DYNAMIC_DISPATCH(move_f32)(job, first, last, scratch); }
void move(const cpu::BatchJob<double>& job, std::int64_t first, std::int64_t last, double* scratch) { HWY_DYNAMIC_DISPATCH(move_f64)(job, first, last, scratch); }

}  // namespace

BatchOrder::BatchOrder(const tridiagonal::System& system, int threads)
    : system_(system), threads_(threads), scratch_(cpu::batch_bytes(system, tridiagonal::Algorithm::automatic, threads)) {}

double BatchOrder::sample() {
    const auto start = std::chrono::steady_clock::now();
    if (system_.dtype == DType::f32) pass<float>();
    else pass<double>();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class T>
void BatchOrder::pass() {
    auto job = cpu::job_of<T>(system_, cpu::shape_of(system_), tridiagonal::Algorithm::automatic);
    job.event = [](void*, std::int64_t, std::int64_t, cpu::BatchEvent) {};  // what is stored is nobody's x
    const std::size_t each = scratch_.bytes() / static_cast<std::size_t>(threads_) / 64 * 64;
    const std::int64_t blocks = job.blocks();
#pragma omp parallel num_threads(threads_)
    {
        const std::int64_t t = omp_get_thread_num(), of = omp_get_num_threads();
        move(job, blocks * t / of, blocks * (t + 1) / of, reinterpret_cast<T*>(static_cast<char*>(scratch_.data()) + static_cast<std::size_t>(t) * each));
    }
}

}  // namespace trifold::bench
#endif
