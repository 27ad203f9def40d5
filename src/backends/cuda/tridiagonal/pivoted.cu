// SPDX-License-Identifier: BSD-3-Clause
// LU with partial pivoting for any layout: by blocks (pivoted_chip.cuh), on chip where systems fit there; beyond 2^24 rows, or on old devices, one thread per system (pivoted_line.cuh).
#include "backends/cuda/tridiagonal/pivoted.hpp"

#include <algorithm>
#include <cstdlib>

#include "backends/cuda/runtime/shared_memory.hpp"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/pivoted_chip.cuh"
#include "backends/cuda/tridiagonal/pivoted_columns.hpp"

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

// Two blocks share a multiprocessor, so that one computes while the other one loads; longer systems have it alone.
constexpr int chip_bytes = 228 * 1024 / 2 - 1024;

// More than a block holds, or might: a block's lanes still share a system, which is in scratch then.
constexpr std::int64_t least_shared_rows = 4096, most_shared_rows = 1 << 24;

bool shares_scratch(const System& system) { return system.rows >= least_shared_rows && system.rows <= most_shared_rows; }

template <class T>
bool cut_for_chip(const System& system, bool marked, ChipCut& cut, unsigned& blocks) {
    constexpr int threads = chip_threads<T>, word = static_cast<int>(sizeof(T));
    constexpr int each = 5 * static_cast<int>(sizeof(Line<T>)) + 4, list = (threads + threads / 32) * 4 + 16, across = threads / 32 * static_cast<int>(sizeof(Equations<T>));
    if (system.rows > most_shared_rows || system.systems() < 1) return false;
    // Lanes of neighbouring systems read from different banks too.
    cut.pitch = static_cast<int>(4 * system.rows) | 1;
    const std::int64_t pitch_bytes = static_cast<std::int64_t>(cut.pitch) * word + each, least = list + across + 16 + pitch_bytes;
    const int bytes = least <= chip_bytes ? chip_bytes : most_shared_bytes;
    cut.on_chip = least <= most_shared_bytes;
    int device = 0, most = 0;
    if (cudaGetDevice(&device) != cudaSuccess || cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) != cudaSuccess) return false;
    if (most < bytes && !shares_scratch(system)) return false;
    cut.on_chip = cut.on_chip && most >= bytes;
    cut.capacity = cut.on_chip ? static_cast<int>((bytes - list - across - 16) / pitch_bytes) : 1;
    const std::int64_t all = (bytes == chip_bytes || !cut.on_chip ? 2 : 1) * multiprocessors_of_current();
    // Every block should have something to do; where all are to be solved, neighbours in memory are on their way together.
    const int window = static_cast<int>(std::clamp<std::int64_t>((system.systems() + all - 1) / all, 1, threads));
    cut.window = marked ? window : std::min(window, cut.capacity);
    cut.capacity = std::min(cut.window, cut.capacity);
    blocks = static_cast<unsigned>(std::min(all, (system.systems() + cut.window - 1) / cut.window));
    const int level = system.levels - 1;
    cut.along_rows = level < 0 || std::llabs(system.rhs.row_stride) <= std::llabs(system.rhs.level_stride[level]);
    cut.across_at = cut.on_chip ? (cut.capacity * cut.pitch * word + 15) / 16 * 16 : 0;
    cut.lines_at = cut.across_at + across;
    cut.verdicts_at = cut.lines_at + cut.capacity * 5 * static_cast<int>(sizeof(Line<T>));
    cut.list_at = cut.verdicts_at + 4 * cut.capacity;
    cut.shared_bytes = cut.list_at + list;
    return true;
}

template <class T, bool OnChip>
void launch_chip(const System& system, const BatchLaunch& launch, const Marks& marks, const unsigned long long* marked, std::int64_t slots, const ChipCut& cut, unsigned blocks) {
    auto* const kernel = pivoted_chip_kernel<T, OnChip>;
    static PerDevice prepared;
    if constexpr (OnChip) prepared.once([&] { allow_shared_memory(kernel); });
    const dim3 grid(static_cast<unsigned>(std::min<std::int64_t>(blocks, slots)));
    const auto bytes = static_cast<std::size_t>(cut.shared_bytes);
    const PivotedJob<T> job(system, launch, marks, marked, slots);
    // Scratch is the caches', whose size stays that of the kernel before where this one begins before that has ended.
    if (OnChip) launch_after(kernel, grid, chip_threads<T>, bytes, launch.stream, job, cut);
    else enqueue_kernel(kernel, grid, chip_threads<T>, bytes, launch.stream, job, cut);
}

std::int64_t room_for(const System& system, const BatchLaunch& launch) { return static_cast<std::int64_t>(launch.scratch_bytes / std::max<std::size_t>(bytes_per_slot(system), 1)); }
std::int64_t slots_within(const System& system, const BatchLaunch& launch) { return std::min(pivoted_slots(system), room_for(system, launch)); }

template <class T>
void launch_pivoted(const System& system, const BatchLaunch& launch, const Marks& marks, const unsigned long long* marked, unsigned long long few) {
    std::int64_t slots = slots_within(system, launch);
    if (slots < 1) return;
    ChipCut cut;
    if (unsigned blocks = 0; cut_for_chip<T>(system, static_cast<bool>(marks), cut, blocks)) {
        cut.most_marked = few;
        if (cut.on_chip) return launch_chip<T, true>(system, launch, marks, marked, slots, cut, blocks);
        // Half of the scratch is for what one thread may have to solve.
        slots = std::min(slots, room_for(system, launch) / 2);
        if (slots > 0) return launch_chip<T, false>(system, launch, marks, marked, slots, cut, blocks);
        slots = slots_within(system, launch);
    }
    const int threads = slots >= 1 << 16 ? many_threads : block_threads;
    const auto blocks = static_cast<unsigned>((slots + threads - 1) / threads);
    launch_after(pivoted_kernel<T>, dim3(blocks), threads, 0, launch.stream, PivotedJob<T>(system, launch, marks, marked, slots));
}

}  // namespace

std::int64_t pivoted_slots(const System& system) {
    // Longer systems than a block holds: few threads, for what blocks leave.
    const bool by_blocks = shares_scratch(system);
    const std::int64_t most = by_blocks ? 256 : 1 << 18, least = by_blocks ? 16 : 1 << 11;
    constexpr std::size_t budget = std::size_t{1} << 29;
    const auto fit = static_cast<std::int64_t>(budget / std::max<std::size_t>(bytes_per_slot(system), 1));
    return std::min(system.systems(), std::clamp(fit, least, most));
}

std::size_t pivoted_scratch(const System& system) {
    return bytes_per_slot(system) * static_cast<std::size_t>(pivoted_slots(system)) * (shares_scratch(system) ? 2 : 1);
}

bool solve_all_as_columns(const System& system, const BatchLaunch& launch, const unsigned long long* wanted) {
    return solve_pivoted_columns(system, launch, {}, wanted, slots_within(system, launch));
}

void solve_pivoted(const System& system, const BatchLaunch& launch, const Marks& marks, const unsigned long long* marked) {
    // Many side by side have a kernel of their own; where it has only what is more than a few, it comes behind the one for few.
    const unsigned long long least = marks ? least_marked_by_columns(system) : 1;
    const auto by_columns = [&] { return solve_pivoted_columns(system, launch, marks, marked, slots_within(system, launch)); };
    if (least == 1 && by_columns()) return;
    const unsigned long long few = least > 1 ? least - 1 : ~0ull;
    if (system.dtype == DType::f32) launch_pivoted<float>(system, launch, marks, marked, few);
    else launch_pivoted<double>(system, launch, marks, marked, few);
    if (least > 1) by_columns();
}

}  // namespace trifold::cuda
