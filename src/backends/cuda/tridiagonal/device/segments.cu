// SPDX-License-Identifier: BSD-3-Clause
// Long columns from the host: how they are cut, what is launched. Nothing waits; the device finds out what is needed.
//
//   windows  of 1024 rows, as if nothing were beyond them               4.3 to 4.6 read, 1 written   columns_dominant.cuh
//   seams    what windows found of the same unknowns is compared        a hundredth of that          segments_seams.cuh
// That is all where unknowns some 64 (single precision: 32) rows apart do not feel each other, to rounding. Else
//   reduce   every segment of 256 rows becomes two relations            4 words per row read         columns_dominant.cuh
//   couple   the segments of a column are solved                        a hundredth of that          segments_couple.cuh
//   finish   every segment again, between unknowns that are known       4 words read, 1 written      columns_dominant.cuh
#include "backends/cuda/tridiagonal/device/segments.hpp"

#include <algorithm>
#include <limits>

#include "backends/cuda/tridiagonal/batch_plan.hpp"
#include "backends/cuda/tridiagonal/device/segments_couple.cuh"
#include "backends/cuda/tridiagonal/device/segments_seams.cuh"
#include "backends/cuda/tridiagonal/device/windows.hpp"
#include "backends/cuda/tridiagonal/pivoted.hpp"

namespace trifold::cuda {
namespace {

using tridiagonal::System;

constexpr std::int64_t least_rows = 4097, most_rows = std::int64_t{1} << 30;

// What a row at a seam may be off by, in units of roundoff of its diagonal times max|x| nearby: as a lane's rows on chip are held to.
constexpr double accepted_roundoffs = 16;

std::size_t up(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

template <class T>
bool plan(const System& system, TileJob<T>& job, ColumnCut& cut) {
    if (system.rows < least_rows || system.rows > most_rows || !has_clusters()) return false;
    job = tile_job<T>(system);
    return columns_side_by_side(job) && cut_segments(job, cut);
}

/// Scratch: what windows say or, later, segments say and are told; marks, a few words; then that of what is left to others.
template <class T>
struct Parts {
    std::size_t joined, last, after, marks, words, rest, bytes;

    explicit Parts(const System& system) {
        constexpr std::size_t rows = 256, word = sizeof(T);
        const auto systems = static_cast<std::size_t>(system.systems()), segments = (static_cast<std::size_t>(system.rows) + rows - 1) / rows;
        joined = up(6 * segments * systems * word);
        last = joined + up(3 * segments * systems * word);
        after = last + up((segments + 1) * systems * word);
        const std::size_t seams = segments / 3;  // windows are more than three times as long
        marks = std::max(after + up(segments * systems * word), up(6 * seams * systems * word));
        words = marks + up(systems);
        rest = words + up(2 * sizeof(unsigned long long));
        bytes = rest + std::max(windows_scratch(system), pivoted_scratch(system));
    }
};

// One marked column takes a block longer than a pass takes all others; but windows take columns a word at a time.
unsigned long long few_of(const System& system) { return static_cast<unsigned long long>(std::clamp<std::int64_t>(system.systems() / 12, 1, 256)); }

/// Enqueues windows with halos. Returns the word in which they say that they do not do; null where nothing was enqueued: in place, what they have stored could not be taken back.
template <class T>
unsigned* settle_in_windows(const System& system, const TileJob<T>& from, const BatchLaunch& launch, T* seams) {
    ColumnCut cut;
    ColumnJob<T> job;
    if (system.in_place || !cut_windows(from, cut) || !column_job(from, cut, job)) return nullptr;
    job.segments.systems = system.systems(), job.segments.seams = seams;
    job.segments.unsettled = &launch.outcome->unsettled, job.tickets = &launch.outcome->tickets;
    const segments::SeamJob<T> compare{seams, system.systems(), job.segments.rows.count - 1, static_cast<T>(accepted_roundoffs * std::numeric_limits<T>::epsilon() / 2), job.segments.unsettled, job.tickets};
    launch_segments(job, ColumnPass::windows, launch.stream);
    const std::int64_t blocks = std::clamp<std::int64_t>(compare.systems * compare.count / 256, 1, 8 * multiprocessors_of_current());
    launch_after(segments::seam_kernel<T>, dim3(static_cast<unsigned>(blocks)), 256, 0, launch.stream, compare);
    return job.segments.unsettled;
}

template <class T>
void solve(const System& system, const BatchLaunch& launch, unsigned* wanted) {
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
    if (!plan(system, from, cut) || !column_job(from, cut, job)) return solve_windows(system, rest, {.after_others = wanted != nullptr});

    ColumnSegments<T>& segments = job.segments;
    segments.systems = couple.systems = system.systems();
    couple.segments = static_cast<int>(segments.rows.count);
    at(segments.relations, 0), at(couple.joined, parts.joined), at(couple.last, parts.last), at(couple.after, parts.after);
    couple.relations = segments.relations, segments.last = couple.last, segments.after = couple.after;
    couple.unsettled = segments.unsettled = wanted ? wanted : settle_in_windows(system, from, launch, reinterpret_cast<T*>(scratch));
    couple.marks = scratch + parts.marks, couple.marked = &launch.outcome->marked, couple.tickets = reinterpret_cast<unsigned*>(words + 1);
    segments.marked = couple.marked, segments.few = few_of(system), segments.few_marked = words, segments.all_left = &launch.outcome->handed_over;
    job.tickets = &launch.outcome->tickets;
    launch_segments(job, ColumnPass::reduce, launch.stream);
    launch_after(segments::couple_kernel<T>, dim3(static_cast<unsigned>((system.systems() + 31) / 32)), 32 * segments::couple_warps, 0, launch.stream, couple);
    job.tickets = couple.tickets;
    launch_segments(job, ColumnPass::finish, launch.stream);
    // What is not dominant need not want pivots, but windows would take these columns a word at a time.
    if (!solve_all_on_chip(system, rest, segments.all_left)) solve_windows(system, rest, {.after_others = true});
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

void solve_segments(const System& system, const BatchLaunch& launch, unsigned* wanted) {
    if (system.dtype == DType::f32) solve<float>(system, launch, wanted);
    else solve<double>(system, launch, wanted);
}

}  // namespace trifold::cuda
