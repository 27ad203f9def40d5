// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/general/ragged_runs.hpp"

#include <algorithm>
#include <limits>

#include "backends/cuda/runtime/launches.hpp"
#include "backends/cuda/runtime/shared_memory.hpp"
#include "backends/cuda/tridiagonal/block/residency.hpp"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/general/ragged_dominant.cuh"
#include "backends/cuda/tridiagonal/general/ragged_parts.cuh"
#include "backends/cuda/tridiagonal/path.hpp"

namespace trifold::cuda {
namespace {

using tridiagonal::Operand;
using tridiagonal::System;

// As many warps on a multiprocessor as registers allow with so many rows each (block/rows_kernel.cuh).
template <class T>
constexpr int lane_rows = sizeof(T) == 8 ? 17 : 33;
constexpr int alone_threads = 128, alone_blocks = 3, team_threads = 192, team_blocks = 2;

constexpr double accepted_roundoffs = 16;  // as of batches (batch_plan.cpp)

std::size_t up(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

/// What lies in scratch, one after the other.
struct Places {
    std::size_t counters = 0, ends, words, marks, starts, runs, long_runs, others, parts, cut_systems, relations, found, around, lists, listed, bytes;

    Places(const System& system, const RaggedPlan& plan) {
        ends = up(sizeof(RaggedCounters));
        words = (static_cast<std::size_t>(plan.rows + bits_before) / 32 + 3 + 3) / 4 * 4;  // runs read two more than their rows have
        marks = ends + up(4 * words);
        starts = marks + up(static_cast<std::size_t>(system.ragged_systems));
        runs = starts + up(static_cast<std::size_t>(plan.runs.windows + 1) * sizeof(std::int64_t));
        long_runs = runs + up(static_cast<std::size_t>(plan.runs.most_runs) * sizeof(RaggedRun));
        others = long_runs + up(static_cast<std::size_t>(plan.runs.long_systems) * sizeof(RaggedRun));
        const bool teams = plan.runs.team.warps * plan.runs.team.blocks > 1;  // one list is enough: there is one team
        parts = others + up(static_cast<std::size_t>(teams ? plan.runs.most_runs : plan.runs.long_systems) * sizeof(RaggedRun));
        const auto most_parts = static_cast<std::size_t>(plan.runs.most_parts), word = size_of(system.dtype);
        cut_systems = parts + up(most_parts * sizeof(RaggedRun));
        relations = cut_systems + up(static_cast<std::size_t>(plan.runs.cut_systems) * sizeof(RaggedParts));
        found = relations + up(6 * most_parts * word);
        around = found + up(most_parts * word);
        lists = around + up(3 * most_parts * word);
        listed = plan.runs.longest > plan.runs.least_listed ? static_cast<std::size_t>(std::min(system.ragged_systems, plan.rows / plan.runs.least_listed)) : 0;
        bytes = lists + 4 * up(listed * sizeof(std::int64_t));
    }
};

/// As many blocks as are there at a time.
template <auto Kernel, bool Couple, class T>
void launch(RaggedRunsJob<T> job, const RaggedTeam& team, std::int64_t most_runs, cudaStream_t stream) {
    constexpr int R = lane_rows<T>;
    static PerDevice prepared;
    prepared.once([] { allow_shared_memory(Kernel); });
    job.warps = Couple ? team.warps : alone_threads / 32, job.blocks = team.blocks;
    const auto blocks = static_cast<unsigned>(team.blocks);
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks), config.blockDim = dim3(32 * static_cast<unsigned>(job.warps));
    config.dynamicSmemBytes = static_cast<std::size_t>(lay_out<T, R>(job, Couple));
    config.stream = stream;
    cudaLaunchAttribute attributes[2];
    config.attrs = attributes;
    if (blocks > 1) attributes[config.numAttrs++] = cluster_of(blocks);
    static Residency residency;
    const std::int64_t needed = Couple ? most_runs : (most_runs + job.warps - 1) / job.warps;
    config.gridDim = dim3(static_cast<unsigned>(std::clamp<std::int64_t>(needed, 1, residency(Kernel, config, blocks))) * blocks);
    while_the_kernel_before_ends(attributes[config.numAttrs++]);
    enqueue_kernel(config, Kernel, job);
}

template <class T>
void solve(const System& system, const RaggedPlan& plan, bool only_mark, const std::int64_t* offsets, unsigned char* scratch, const BatchLaunch& launch_of) {
    const Places places(system, plan);
    auto* const counters = reinterpret_cast<RaggedCounters*>(scratch + places.counters);
    RaggedCut cut;
    cut.offsets = offsets, cut.systems = system.ragged_systems, cut.first = system.offsets[0];
    cut.counters = counters, cut.ends = reinterpret_cast<unsigned*>(scratch + places.ends), cut.words = static_cast<std::int64_t>(places.words);
    cut.marks = scratch + places.marks, cut.only_mark = only_mark, cut.status = launch_of.status;
    cut.windows = plan.runs.windows, cut.inverse = ~0ull / static_cast<unsigned long long>(plan.runs.window) + 1, cut.starts = reinterpret_cast<std::int64_t*>(scratch + places.starts);
    cut.capacity = plan.runs.capacity, cut.step = plan.runs.step, cut.runs = reinterpret_cast<RaggedRun*>(scratch + places.runs);
    cut.whole = plan.runs.whole, cut.least_alone = plan.least_alone, cut.part_rows = 32 * lane_rows<T>;
    cut.parts = reinterpret_cast<RaggedRun*>(scratch + places.parts), cut.cut_systems = reinterpret_cast<RaggedParts*>(scratch + places.cut_systems);
    cut.most = plan.runs.team.rows, cut.most_long = plan.runs.long_team.rows, cut.long_runs = reinterpret_cast<RaggedRun*>(scratch + places.long_runs);
    const auto blocks_for = [](std::int64_t threads) { return static_cast<unsigned>(std::clamp<std::int64_t>((threads + cut_threads - 1) / cut_threads, 1, 1 << 20)); };
    const DeviceOutcome fresh = fresh_outcome(system.rows, system.ragged_systems, static_cast<int>(only_mark ? tridiagonal::Algorithm::lu : tridiagonal::Algorithm::thomas));
    enqueue_kernel(clear_ragged, std::min(blocks_for(cut.words / 4), 8u * static_cast<unsigned>(multiprocessors_of_current())), cut_threads, 0, launch_of.stream, cut, launch_of.outcome, fresh);
    launch_after(look_at_ragged, blocks_for(cut.systems + 1), cut_threads, 0, launch_of.stream, cut);
    if (only_mark) return;
    launch_after(cut_ragged, static_cast<unsigned>((cut.windows + window_threads - 1) / window_threads), window_threads, 0, launch_of.stream, cut);

    RaggedRunsJob<T> job;
    job.runs = cut.runs, job.run_count = &counters->runs, job.tickets = &counters->tickets;
    job.offsets = offsets, job.ends = cut.ends, job.first = cut.first, job.end = cut.first + plan.rows;
    const Operand* const operands[5] = {&system.lower, &system.diag, &system.upper, &system.rhs, &system.x};
    for (int k = 0; k < 5; ++k) job.operand[k] = static_cast<T*>(operands[k]->data);
    job.adds = system.accumulate, job.accept = static_cast<T>(accepted_roundoffs * std::numeric_limits<T>::epsilon() / 2);
    job.marks = cut.marks, job.any = &counters->marked;
    job.in_place = system.in_place, job.status = launch_of.status, job.outcome = launch_of.outcome;
    constexpr auto of_warps = ragged_runs_kernel<T, lane_rows<T>, false, alone_threads, alone_blocks>, of_teams = ragged_runs_kernel<T, lane_rows<T>, true, team_threads, team_blocks>, reduce_parts = ragged_parts_kernel<T, lane_rows<T>, alone_threads, alone_blocks>;
    constexpr auto of_teams_dominant = ragged_dominant_kernel<T, lane_rows<T>, team_threads, team_blocks>;
    if (plan.runs.cut_systems > 0) {
        RaggedRunsJob<T> of_parts = job;
        of_parts.runs = cut.parts, of_parts.run_count = &counters->parts, of_parts.tickets = &counters->part_tickets;
        of_parts.cut_systems = cut.cut_systems, of_parts.cut_count = &counters->cut_systems;
        of_parts.relations = reinterpret_cast<T*>(scratch + places.relations), of_parts.found = reinterpret_cast<T*>(scratch + places.found);
        launch<reduce_parts, false>(of_parts, RaggedTeam{1, 1, 0}, plan.runs.most_parts, launch_of.stream);
        of_parts.around = reinterpret_cast<T*>(scratch + places.around);
        const auto blocks = static_cast<unsigned>(std::min<std::int64_t>((plan.runs.cut_systems + parts_threads / 32 - 1) / (parts_threads / 32), 4 * multiprocessors_of_current()));
        launch_after(ragged_around_kernel<T>, blocks, parts_threads, 0, launch_of.stream, of_parts);
        launch<of_warps, false>(of_parts, RaggedTeam{1, 1, 0}, plan.runs.most_parts, launch_of.stream);
    }
    const bool alone = plan.runs.team.warps * plan.runs.team.blocks == 1;
    if (alone) launch<of_warps, false>(job, plan.runs.team, plan.runs.most_runs, launch_of.stream);
    if (!alone || plan.runs.long_systems > 0) {
        RaggedRunsJob<T> of_team = job;
        of_team.others = reinterpret_cast<RaggedRun*>(scratch + places.others), of_team.other_count = &counters->others;
        if (alone) of_team.runs = cut.long_runs, of_team.run_count = &counters->long_runs, of_team.tickets = &counters->long_tickets;
        const RaggedTeam& team = alone ? plan.runs.long_team : plan.runs.team;
        const std::int64_t most = alone ? plan.runs.long_systems : plan.runs.most_runs;
        launch<of_teams_dominant, true>(of_team, team, most, launch_of.stream);
        of_team.runs = of_team.others, of_team.run_count = of_team.other_count, of_team.tickets = &counters->other_tickets;
        launch<of_teams, true>(of_team, team, most, launch_of.stream);
    }
}

template <class T>
int resident_blocks(int warps, int blocks) {
    constexpr int multiprocessor_bytes = 228 * 1024, reserved_bytes = 1024;
    RaggedRunsJob<T> job;
    job.warps = warps, job.blocks = blocks;
    const int bytes = lay_out<T, lane_rows<T>>(job, true);
    return bytes > most_shared_bytes ? 0 : std::min(multiprocessor_bytes / (bytes + reserved_bytes), team_threads / 32 * team_blocks / warps);
}

}  // namespace

bool runs_take(const System& system) {
    const Operand* const operands[5] = {&system.lower, &system.diag, &system.upper, &system.rhs, &system.x};
    for (const Operand* operand : operands)
        if (operand->kind == Operand::Kind::scalar || operand->row_stride != 1) return false;
    return has_clusters();
}

void limit_runs(RaggedLimits& limits, DType dtype) {
    limits.warp_rows = 32 * (dtype == DType::f32 ? lane_rows<float> : lane_rows<double>);
    limits.resident = dtype == DType::f32 ? resident_blocks<float> : resident_blocks<double>;
    limits.block_warps = team_threads / 32, limits.multiprocessor_warps = alone_threads / 32 * alone_blocks;
}

std::size_t runs_scratch(const System& system, const RaggedPlan& plan) { return Places(system, plan).bytes; }

void solve_runs(const System& system, const RaggedPlan& plan, bool only_mark, const std::int64_t* offsets, void* scratch, const BatchLaunch& launch) {
    auto* const bytes = static_cast<unsigned char*>(scratch);
    if (system.dtype == DType::f32) solve<float>(system, plan, only_mark, offsets, bytes, launch);
    else solve<double>(system, plan, only_mark, offsets, bytes, launch);
}

RaggedLeft left_by_runs(const System& system, const RaggedPlan& plan, void* scratch) {
    const Places places(system, plan);
    auto* const bytes = static_cast<unsigned char*>(scratch);
    auto* const counters = reinterpret_cast<RaggedCounters*>(bytes + places.counters);
    RaggedLeft left;
    left.marks = bytes + places.marks, left.any = &counters->marked, left.tickets = &counters->marked_tickets;
    left.most = static_cast<std::int64_t>(places.listed);
    const auto list = [&](int which) { return reinterpret_cast<std::int64_t*>(bytes + places.lists + which * up(places.listed * sizeof(std::int64_t))); };
    left.small = {list(0), &counters->small}, left.middle = {list(1), &counters->middle}, left.large = {list(2), &counters->large}, left.huge = {list(3), &counters->huge};
    return left;
}

}  // namespace trifold::cuda
