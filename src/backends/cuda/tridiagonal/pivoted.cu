// SPDX-License-Identifier: BSD-3-Clause
// LU with partial pivoting for any layout: on chip where systems fit there (pivoted_chip.cuh), else one thread per system (pivoted_line.cuh).
#include "backends/cuda/tridiagonal/pivoted.hpp"

#include <algorithm>
#include <cstdlib>

#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/pivoted_chip.cuh"

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

// Two blocks share a multiprocessor, so that one computes while the other one loads.
constexpr int chip_bytes = 228 * 1024 / 2 - 1024;

template <class T>
bool cut_for_chip(const System& system, bool marked, ChipCut& cut, unsigned& blocks) {
    if (system.rows > chip_bytes / static_cast<int>(4 * sizeof(T)) || system.systems() < 1) return false;
    int device = 0, most = 0;
    if (cudaGetDevice(&device) != cudaSuccess || cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) != cudaSuccess || most < chip_bytes)
        return false;
    constexpr int each = 5 * static_cast<int>(sizeof(Line<T>)) + 4, list = (chip_threads + chip_threads / 32) * 4 + 16;
    cut.pitch = static_cast<int>(4 * system.rows) | 1;
    const std::int64_t all = 2 * multiprocessors_of_current();
    // Every block should have something to do.
    cut.window = static_cast<int>(std::clamp<std::int64_t>((system.systems() + all - 1) / all, 1, chip_threads));
    cut.capacity = std::min(cut.window, (chip_bytes - list) / (cut.pitch * static_cast<int>(sizeof(T)) + each));
    if (cut.capacity < 1) return false;
    blocks = static_cast<unsigned>(std::min(all, (system.systems() + cut.window - 1) / cut.window));
    const int level = system.levels - 1;
    cut.along_rows = level < 0 || std::llabs(system.rhs.row_stride) <= std::llabs(system.rhs.level_stride[level]);
    // Where all are to be solved, one thread each is faster from here on (measured on an H200).
    if (!marked && system.rows > static_cast<std::int64_t>((cut.along_rows ? 8192 : 1024) / sizeof(T))) return false;
    cut.lines_at = (cut.capacity * cut.pitch * static_cast<int>(sizeof(T)) + 15) / 16 * 16;
    cut.verdicts_at = cut.lines_at + cut.capacity * 5 * static_cast<int>(sizeof(Line<T>));
    cut.list_at = cut.verdicts_at + 4 * cut.capacity;
    cut.shared_bytes = cut.list_at + list;
    return true;
}

template <class T>
void launch_pivoted(const System& system, const BatchLaunch& launch, const unsigned char* marks, const unsigned long long* marked, bool overlapped) {
    const auto room = static_cast<std::int64_t>(launch.scratch_bytes / std::max<std::size_t>(bytes_per_slot(system), 1));
    const std::int64_t slots = std::min(pivoted_slots(system), room);
    if (slots < 1) return;
    ChipCut cut;
    if (unsigned blocks = 0; cut_for_chip<T>(system, marks != nullptr, cut, blocks)) {
        static PerDevice prepared;
        prepared.once([] {
            cudaFuncSetAttribute(pivoted_chip_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, chip_bytes);
            cudaFuncSetAttribute(pivoted_chip_kernel<T>, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
        });
        const dim3 grid(static_cast<unsigned>(std::min<std::int64_t>(blocks, slots)));
        const auto bytes = static_cast<std::size_t>(cut.shared_bytes);
        const PivotedJob<T> job(system, launch, marks, marked, slots);
        if (overlapped) launch_after(pivoted_chip_kernel<T>, grid, chip_threads, bytes, launch.stream, job, cut);
        else pivoted_chip_kernel<T><<<grid, chip_threads, bytes, launch.stream>>>(job, cut);
        return;
    }
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

void solve_pivoted(const System& system, const BatchLaunch& launch, const unsigned char* marks, const unsigned long long* marked, bool overlapped) {
    if (system.dtype == DType::f32) launch_pivoted<float>(system, launch, marks, marked, overlapped);
    else launch_pivoted<double>(system, launch, marks, marked, overlapped);
}

}  // namespace trifold::cuda
