// SPDX-License-Identifier: BSD-3-Clause
// LU with partial pivoting for any layout, one thread per system: pivoted_line.cuh says what a thread does.
#include "backends/cuda/tridiagonal/pivoted.hpp"

#include <algorithm>

#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/pivoted_line.cuh"

namespace trifold::cuda {
namespace {

using tridiagonal::System;

constexpr int block_threads = 64, many_threads = 256;  // where there is little to do, on as many multiprocessors as possible

template <class T>
__global__ void __launch_bounds__(many_threads) pivoted_kernel(const __grid_constant__ PivotedJob<T> job) {
    after_the_kernel_before();
    const std::int64_t slot = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (slot >= job.slots || (job.marked && *job.marked == 0)) return;
    solve_lines(job, slot);
}

std::size_t bytes_per_slot(const System& system) { return 4 * size_of(system.dtype) * static_cast<std::size_t>(system.rows); }

template <class T>
void launch_pivoted(const System& system, const BatchLaunch& launch, const unsigned char* marks, const unsigned long long* marked) {
    const auto room = static_cast<std::int64_t>(launch.scratch_bytes / std::max<std::size_t>(bytes_per_slot(system), 1));
    const std::int64_t slots = std::min(pivoted_slots(system), room);
    if (slots < 1) return;
    const int threads = slots >= 1 << 16 ? many_threads : block_threads;
    const auto blocks = static_cast<unsigned>((slots + threads - 1) / threads);
    launch_after(pivoted_kernel<T>, dim3(blocks), threads, 0, launch.stream, PivotedJob<T>(system, launch, marks, marked, slots));
}

}  // namespace

std::int64_t pivoted_slots(const System& system) {
    constexpr std::int64_t most = 1 << 18, least = 1 << 11;
    constexpr std::size_t budget = std::size_t{1} << 29;
    const auto fit = static_cast<std::int64_t>(budget / std::max<std::size_t>(bytes_per_slot(system), 1));
    return std::min(system.systems(), std::clamp(fit, least, most));
}

std::size_t pivoted_scratch(const System& system) { return bytes_per_slot(system) * static_cast<std::size_t>(pivoted_slots(system)); }

void solve_pivoted(const System& system, const BatchLaunch& launch, const unsigned char* marks, const unsigned long long* marked) {
    if (system.dtype == DType::f32) launch_pivoted<float>(system, launch, marks, marked);
    else launch_pivoted<double>(system, launch, marks, marked);
}

}  // namespace trifold::cuda
