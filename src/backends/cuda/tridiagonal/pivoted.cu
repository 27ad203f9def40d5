// SPDX-License-Identifier: BSD-3-Clause
// LU with partial pivoting for any layout: by blocks (pivoted_chip.cuh), on chip where systems fit there, of one block or of a cluster; beyond 2^24 rows, or on old devices, one thread per system (pivoted_line.cuh).
#include "backends/cuda/tridiagonal/pivoted.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "backends/cuda/runtime/shared_memory.hpp"
#include "backends/cuda/tridiagonal/block/residency.hpp"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/few_rows.hpp"
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

constexpr std::int64_t least_cluster_rows = 2048;

bool shares_scratch(const System& system) { return system.rows >= least_shared_rows && system.rows <= most_shared_rows; }

int most_shared_of_current() {
    static OfDevice known;
    return known([](int device) {
        int most = 0;
        return cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) == cudaSuccess ? most : 0;
    });
}

/// So many rows of each system a block, in `bytes` of shared memory. False: there is no room for one.
template <class T>
bool cut_shared_memory(ChipCut& cut, std::int64_t rows, int bytes) {
    constexpr int threads = chip_threads<T>, word = static_cast<int>(sizeof(T));
    constexpr int list = (threads + threads / 32) * 4 + 16, across = threads / 32 * static_cast<int>(sizeof(Equations<T>));
    const int each = 5 * static_cast<int>(sizeof(Line<T>)) + 8 + (cut.place == Place::cluster ? static_cast<int>(sizeof(Equations<T>)) : 0);
    cut.rows = static_cast<int>(rows);
    // Lanes of neighbouring systems read from different banks too.
    cut.pitch = static_cast<int>(4 * rows) | 1;
    cut.capacity = cut.place == Place::scratch ? 1 : static_cast<int>((bytes - list - across - 32) / (static_cast<std::int64_t>(cut.pitch) * word + each));
    // All lanes have rows then, as few as they remember choices for; in half of the memory they have anyway.
    if (bytes > chip_bytes) {
        const auto power = [](int n) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(n))); };
        cut.capacity = std::min(cut.capacity, threads / least_lanes);
        if (cut.capacity > 0 && rows > static_cast<std::int64_t>(power(threads / cut.capacity)) * most_chunk) cut.capacity = power(cut.capacity);
    }
    return cut.capacity > 0;
}

template <class T>
void place_in_shared_memory(ChipCut& cut) {
    constexpr int threads = chip_threads<T>, word = static_cast<int>(sizeof(T)), of_equations = static_cast<int>(sizeof(Equations<T>));
    cut.across_at = cut.place == Place::scratch ? 0 : (cut.capacity * cut.pitch * word + 15) / 16 * 16;
    cut.slots_at = cut.across_at + threads / 32 * of_equations;
    cut.lines_at = cut.slots_at + (cut.place == Place::cluster ? cut.capacity * of_equations : 0);
    cut.told_at = cut.lines_at + cut.capacity * 5 * static_cast<int>(sizeof(Line<T>));
    cut.verdicts_at = cut.told_at + 4 * cut.capacity;
    cut.list_at = cut.verdicts_at + 4 * cut.capacity;
    cut.shared_bytes = cut.list_at + (threads + threads / 32) * 4;
}

/// Systems that fit into the shared memory of one block, or of a cluster: a few that lie side by side, so that what is read of memory is used. Else they are for scratch.
template <class T>
bool choose_place(const System& system, ChipCut& cut, int& bytes) {
    constexpr std::int64_t sector = 32 / static_cast<std::int64_t>(sizeof(T));
    const int most = most_shared_of_current(), beside = cut.along_rows ? 1 : static_cast<int>(std::min(sector, system.systems()));
    const auto fits = [&](Place place, int blocks, int room, int systems) {
        cut.place = place, cut.blocks = blocks, bytes = room;
        return room <= most && cut_shared_memory<T>(cut, (system.rows + blocks - 1) / blocks, room) && cut.capacity >= systems;
    };
    if (fits(Place::block, 1, chip_bytes, beside) || fits(Place::block, 1, most_shared_bytes, beside)) return true;
    // Long parts: joining them costs more than a second block on the multiprocessor gains (measured).
    for (int systems = beside; systems > 0; systems /= 2)
        for (int blocks = 2; has_clusters() && system.rows >= least_cluster_rows && blocks <= 8; blocks *= 2)
            if (fits(Place::cluster, blocks, most_shared_bytes, systems)) return true;
    if (fits(Place::block, 1, most_shared_bytes, 1)) return true;
    return shares_scratch(system) && fits(Place::scratch, 1, 0, 1);
}

/// Every team should have something to do; where all are to be solved, neighbours in memory are on their way together.
int window_of(const System& system, std::int64_t teams, int most) { return static_cast<int>(std::clamp<std::int64_t>((system.systems() + teams - 1) / teams, 1, most)); }

template <class T>
bool cut_for_chip(const System& system, bool marked, ChipCut& cut, unsigned& teams) {
    constexpr int threads = chip_threads<T>;
    if (system.rows > most_shared_rows || system.systems() < 1) return false;
    const int level = system.levels - 1;
    cut.along_rows = level < 0 || std::llabs(system.rhs.row_stride) <= std::llabs(system.rhs.level_stride[level]);
    int bytes = 0;
    if (!choose_place<T>(system, cut, bytes)) return false;
    const std::int64_t all = (bytes <= chip_bytes ? 2 : 1) * multiprocessors_of_current() / cut.blocks;
    cut.window = window_of(system, all, marked ? threads : cut.capacity);
    cut.capacity = std::min(cut.window, cut.capacity);
    place_in_shared_memory<T>(cut);
    teams = static_cast<unsigned>(std::min(all, (system.systems() + cut.window - 1) / cut.window));
    return true;
}

template <class T, Place place>
void launch_chip(const System& system, const BatchLaunch& launch, const Marks& marks, const unsigned long long* marked, std::int64_t slots, ChipCut cut, unsigned teams) {
    auto* const kernel = pivoted_chip_kernel<T, place>;
    static PerDevice prepared;
    if constexpr (place != Place::scratch) prepared.once([&] { allow_shared_memory(kernel); });
    const PivotedJob<T> job(system, launch, marks, marked, slots);
    cudaLaunchConfig_t config = {};
    config.blockDim = dim3(chip_threads<T>);
    config.dynamicSmemBytes = static_cast<std::size_t>(cut.shared_bytes), config.stream = launch.stream;
    cudaLaunchAttribute attributes[2];
    config.attrs = attributes;
    if constexpr (place == Place::cluster) {
        attributes[config.numAttrs++] = cluster_of(static_cast<unsigned>(cut.blocks)), config.gridDim = dim3(static_cast<unsigned>(cut.blocks));
        // One that came when others have ended would take as long again.
        static Residency residency;
        const unsigned most = residency(kernel, config, static_cast<unsigned>(cut.blocks));
        if (most < teams) teams = most, cut.window = window_of(system, most, marks ? chip_threads<T> : cut.capacity);
    }
    config.gridDim = dim3(static_cast<unsigned>(std::min<std::int64_t>(teams, slots)) * static_cast<unsigned>(cut.blocks));
    // Scratch is the caches', whose size stays that of the kernel before where this one begins before that has ended.
    if constexpr (place != Place::scratch) while_the_kernel_before_ends(attributes[config.numAttrs++]);
    enqueue_kernel(config, kernel, job, cut);
}

std::int64_t room_for(const System& system, const BatchLaunch& launch) { return static_cast<std::int64_t>(launch.scratch_bytes / std::max<std::size_t>(bytes_per_slot(system), 1)); }
std::int64_t slots_within(const System& system, const BatchLaunch& launch) { return std::min(pivoted_slots(system), room_for(system, launch)); }

/// False: it does not fit there, and nothing was enqueued.
template <class T>
bool launch_on_chip(const System& system, const BatchLaunch& launch, const Marks& marks, const unsigned long long* marked, unsigned long long few) {
    const std::int64_t slots = slots_within(system, launch);
    ChipCut cut;
    unsigned teams = 0;
    if (slots < 1 || !cut_for_chip<T>(system, static_cast<bool>(marks), cut, teams) || cut.place == Place::scratch) return false;
    cut.most_marked = few;
    if (cut.place == Place::block) launch_chip<T, Place::block>(system, launch, marks, marked, slots, cut, teams);
    else launch_chip<T, Place::cluster>(system, launch, marks, marked, slots, cut, teams);
    return true;
}

template <class T>
void launch_pivoted(const System& system, const BatchLaunch& launch, const Marks& marks, const unsigned long long* marked, unsigned long long few) {
    const std::int64_t slots = slots_within(system, launch);
    if (slots < 1 || launch_on_chip<T>(system, launch, marks, marked, few)) return;
    ChipCut cut;
    if (unsigned teams = 0; cut_for_chip<T>(system, static_cast<bool>(marks), cut, teams)) {
        cut.most_marked = few;
        // Half of the scratch is for what one thread may have to solve.
        if (const std::int64_t shared = std::min(slots, room_for(system, launch) / 2); shared > 0) return launch_chip<T, Place::scratch>(system, launch, marks, marked, shared, cut, teams);
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

bool solve_all_on_chip(const System& system, const BatchLaunch& launch, const unsigned long long* wanted) {
    if (solve_pivoted_columns(system, launch, {}, wanted, slots_within(system, launch))) return true;
    return system.dtype == DType::f32 ? launch_on_chip<float>(system, launch, {}, wanted, ~0ull) : launch_on_chip<double>(system, launch, {}, wanted, ~0ull);
}

void solve_pivoted(const System& system, const BatchLaunch& launch, const Marks& marks, const unsigned long long* marked) {
    if (marks && fits_few_rows(system)) return solve_few_marked(system, launch, marks, marked);
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
