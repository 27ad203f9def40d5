// SPDX-License-Identifier: BSD-3-Clause
// Long columns from the host: how they are cut, what is launched. Nothing waits; the device finds out what is needed.
//
//   reduce   every segment of 256 rows becomes two relations            4 words per row read         columns_dominant.cuh
//   couple   the segments of a column are solved                        a hundredth of that          segments_couple.cuh
//   finish   every segment again, between unknowns that are known       4 words read, 1 written      columns_dominant.cuh
#include "backends/cuda/tridiagonal/device/segments.hpp"

#include <algorithm>

#include "backends/cuda/tridiagonal/batch_plan.hpp"
#include "backends/cuda/tridiagonal/device/segments_couple.cuh"
#include "backends/cuda/tridiagonal/device/windows.hpp"
#include "backends/cuda/tridiagonal/pivoted.hpp"

namespace trifold::cuda {
namespace {

using tridiagonal::System;

constexpr std::int64_t least_rows = 4097, most_rows = std::int64_t{1} << 30;

std::size_t up(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

template <class T>
bool plan(const System& system, TileJob<T>& job, ColumnCut& cut) {
    if (system.rows < least_rows || system.rows > most_rows || !has_clusters()) return false;
    job = tile_job<T>(system);
    return columns_side_by_side(job) && cut_segments(job, cut);
}

/// Scratch: what segments say and are told, marks, a few words; then that of what is left to others.
template <class T>
struct Parts {
    std::size_t joined, last, after, marks, words, rest, bytes;

    explicit Parts(const System& system) {
        constexpr std::size_t rows = 256, word = sizeof(T);
        const auto systems = static_cast<std::size_t>(system.systems()), segments = (static_cast<std::size_t>(system.rows) + rows - 1) / rows;
        joined = up(6 * segments * systems * word);
        last = joined + up(3 * segments * systems * word);
        after = last + up((segments + 1) * systems * word);
        marks = after + up(segments * systems * word);
        words = marks + up(systems);
        rest = words + up(2 * sizeof(unsigned long long));
        bytes = rest + std::max(windows_scratch(system), pivoted_scratch(system));
    }
};

// One marked column takes a block longer than a pass takes all others; but windows take columns a word at a time.
unsigned long long few_of(const System& system) { return static_cast<unsigned long long>(std::clamp<std::int64_t>(system.systems() / 12, 1, 256)); }

template <class T>
void solve(const System& system, const BatchLaunch& launch) {
    TileJob<T> from;
    ColumnCut cut;
    ColumnJob<T> job;
    const Parts<T> parts(system);
    if (launch.scratch_bytes < parts.bytes) return;
    auto* const scratch = static_cast<unsigned char*>(launch.scratch);
    const auto at = [&]<class U>(U*& pointer, std::size_t offset) { pointer = reinterpret_cast<U*>(scratch + offset); };
    auto* const words = reinterpret_cast<unsigned long long*>(scratch + parts.words);
    BatchLaunch rest = launch;
    rest.scratch = scratch + parts.rest, rest.scratch_bytes = launch.scratch_bytes - parts.rest;
    segments::CoupleJob<T> couple;
    if (!plan(system, from, cut) || !column_job(from, cut, job)) return solve_windows(system, rest);

    ColumnSegments<T>& segments = job.segments;
    segments.systems = couple.systems = system.systems();
    couple.segments = static_cast<int>(segments.count);
    at(segments.relations, 0), at(couple.joined, parts.joined), at(couple.last, parts.last), at(couple.after, parts.after);
    couple.relations = segments.relations, segments.last = couple.last, segments.after = couple.after;
    couple.marks = scratch + parts.marks, couple.marked = &launch.outcome->marked, couple.tickets = reinterpret_cast<unsigned*>(words + 1);
    segments.marked = couple.marked, segments.few = few_of(system), segments.few_marked = words, segments.all_left = &launch.outcome->handed_over;
    job.tickets = &launch.outcome->tickets;
    launch_segments(job, ColumnPass::reduce, launch.stream);
    launch_after(segments::couple_kernel<T>, dim3(static_cast<unsigned>((system.systems() + 31) / 32)), 32 * segments::couple_warps, 0, launch.stream, couple);
    job.tickets = couple.tickets;
    launch_segments(job, ColumnPass::finish, launch.stream);
    solve_windows(system, rest, {.after_halos = true});
    solve_pivoted(system, rest, couple.marks, words);
}

}  // namespace

bool takes_segments(const System& system) {
    if (windows_refuse(system)) return false;
    ColumnCut cut;
    if (system.dtype == DType::f64) {
        TileJob<double> job;
        return plan(system, job, cut);
    }
    TileJob<float> job;
    return plan(system, job, cut);
}

std::size_t segments_scratch(const System& system) { return system.dtype == DType::f32 ? Parts<float>(system).bytes : Parts<double>(system).bytes; }

void solve_segments(const System& system, const BatchLaunch& launch) {
    if (system.dtype == DType::f32) solve<float>(system, launch);
    else solve<double>(system, launch);
}

}  // namespace trifold::cuda
