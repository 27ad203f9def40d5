// SPDX-License-Identifier: BSD-3-Clause
// Batches: every system on chip without pivoting; where all have one matrix, that is eliminated once. Systems whose solution fails
// its check, or all where their one matrix does, by the general pivoted path.
#include "backends/cuda/tridiagonal/batch.hpp"

#include "backends/cuda/runtime/reset.hpp"
#include "backends/cuda/tridiagonal/batch_plan.hpp"
#include "backends/cuda/tridiagonal/block/one_launch.cuh"
#include "backends/cuda/tridiagonal/block/one_system.hpp"
#include "backends/cuda/tridiagonal/device/certified.hpp"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/device/two_pass.hpp"
#include "backends/cuda/tridiagonal/general/added.hpp"
#include "backends/cuda/tridiagonal/pivoted.hpp"
#include "backends/cuda/tridiagonal/pivoted_columns.hpp"
#include "backends/cuda/tridiagonal/shared/plan.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::cuda {
namespace {

using tridiagonal::System;

constexpr std::size_t alignment = 256;

std::size_t up(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

// Scratch: a mark per system, one per tile of several, what the pivoted path needs. Counters are the outcome's.
std::size_t marks_of_systems(const System& system) { return up(static_cast<std::size_t>(system.systems())); }
std::size_t marks_bytes(const System& system) { return marks_of_systems(system) + up(static_cast<std::size_t>(system.systems() / 2 + 1)); }

// More rows than a block holds in double precision, and so many that windows which give up (15 us) are little beside the rest. A cluster's blocks wait for each
// other: 8192 rows side by side reach 81 % of the roof so, 90 in windows with halos.
bool enough_for_halos(const System& system) {
    constexpr std::int64_t least = 6401, least_of_all = std::int64_t{1} << 22;
    return system.dtype == DType::f64 && system.rows >= least && system.rows * system.systems() >= least_of_all;
}

// One system of more rows than a block holds: its lanes would take five times as long, in scratch, as a cluster's in two passes.
bool pivoted_in_passes(const System& system) {
    constexpr std::int64_t least = 4609;
    return system.rows >= least && in_a_cluster(system);
}

// wanted: null, or a word in the device's memory that is zero where nothing is to be done.
template <class T>
void solve(const System& system, const BatchLaunch& launch, const unsigned long long* wanted = nullptr) {
    auto* const marks = static_cast<unsigned char*>(launch.scratch);
    unsigned long long* const handed_over = &launch.outcome->marked;
    const int branch = static_cast<int>(tridiagonal::Algorithm::thomas);
    const Opening opening{wanted ? nullptr : launch.outcome, system.rows, system.systems(), branch};
    Marks marked = marks;
    if (SharedPlan<T> shared = plan_shared<T>(system); shared.kernel) {
        shared.job.handed_over = handed_over, shared.job.marks = marks;
        shared.job.tickets = &launch.outcome->tickets, shared.job.opening = opening;
        shared.job.cleared = &launch.outcome->arrived;  // which only longer systems use otherwise
        shared.job.wanted = wanted;
        shared.kernel->launch(shared.job, launch.stream);
    } else {
        BatchPlan<T> plan = plan_batch<T>(system);
        plan.job.handed_over = handed_over, plan.job.marks = marks;
        plan.job.tickets = &launch.outcome->tickets, plan.job.opening = opening, plan.job.wanted = wanted;
        if (!plan.in_registers && plan.kernel->width > 1 && !wanted) reset_outcome(launch.outcome, system.rows, system.systems(), branch, launch.stream);
        // Few tiles have marks, so that a byte per tile does for the others: of three rows each, a byte per system would be a sixtieth of what is moved.
        if (!plan.in_registers && plan.kernel->width == 1 && plan.job.groups > 1 && plan.job.one_run && plan.job.column_weight == 1 && !pivoted_in_passes(system)) {
            plan.job.tile_marks = marks + marks_of_systems(system);
            marked = {marks, plan.job.tile_marks, static_cast<unsigned>(plan.job.groups)};
        }
        // handed_over: a word that only long systems use otherwise.
        if (plan.in_registers) {
            // Where most need pivots, a pass that finds that out for all would cost half as much as they do. Of many rows it gives up before it has seen all.
            constexpr std::int64_t short_rows = 2048, many_in_all = std::int64_t{1} << 22;
            const bool few_tiles = system.rows <= short_rows && system.rows * system.systems() < many_in_all;
            const unsigned long long most = few_tiles && least_marked_by_columns(system) > 1 ? static_cast<unsigned long long>(system.systems()) / 2 : ~0ull;
            solve_cut_columns(plan.job, plan.columns, &launch.outcome->handed_over, launch.stream, most);
        }
        else plan.kernel->launch(plan.job, shared_bytes(plan.job, *plan.kernel), launch.stream);
    }
    BatchLaunch rest = launch;
    rest.scratch = marks + marks_bytes(system);
    rest.scratch_bytes = launch.scratch_bytes - marks_bytes(system);
    const auto solve_marked = [&](const System& left) {
        if (pivoted_in_passes(left)) solve_two_pass(left, rest, {.marks = marks, .wanted = handed_over, .least_wanted = 1});
        else solve_pivoted(left, rest, marked, handed_over);
    };
    if (!system.accumulate) return solve_marked(system);
    const System apart = solved_apart(system, rest.scratch);
    rest.scratch = static_cast<unsigned char*>(rest.scratch) + apart_bytes(system), rest.scratch_bytes -= apart_bytes(system);
    solve_marked(apart);
    add_marked(system, apart, rest, marked, handed_over);
}

template <class T>
bool solve_one_tile(const System& system, const BatchLaunch& launch) {
    if (plan_shared<T>(system).kernel) return false;
    BatchPlan<T> plan = plan_batch<T>(system);
    const bool in_passes = pivoted_in_passes(system);
    if (!plan.kernel || plan.in_registers || plan.job.tiles != 1 || !plan.kernel->launch_once || (in_passes && launch.status)) return false;
    auto* const marks = static_cast<unsigned char*>(launch.scratch);
    plan.job.handed_over = &launch.outcome->marked, plan.job.marks = marks;
    plan.job.tickets = &launch.outcome->tickets;
    BatchLaunch rest = launch;
    rest.scratch = marks + marks_bytes(system);
    rest.scratch_bytes = launch.scratch_bytes - marks_bytes(system);
    OneLaunch<T> once{PivotedJob<T>(system, rest, marks, nullptr, pivoted_slots(system)),
                      fresh_outcome(system.rows, system.systems(), static_cast<int>(tridiagonal::Algorithm::thomas))};
    if (in_passes) once.rest.levels.systems = 0;  // nothing to rescue there: by the launch that follows
    plan.kernel->launch_once(plan.job, once, shared_bytes(plan.job, *plan.kernel), launch.stream);
    if (in_passes) solve_two_pass(system, rest, {.marks = marks, .wanted = plan.job.handed_over, .least_wanted = 1});
    return true;
}

template <class T>
bool adds_in_tiles(const System& system) {
    if (plan_shared<T>(system).kernel) return true;
    const BatchPlan<T> plan = plan_batch<T>(system);
    if (plan.in_registers) return plan.columns.bands == ColumnBands::own || plan.columns.bands == ColumnBands::filled;
    return plan.kernel && plan.kernel->width == 1 && plan.job.tiles > 1;
}

template <class T>
bool fits(const System& system) {
    return plan_batch<T>(system).fits() || plan_shared<T>(system).kernel;
}

}  // namespace

const char* batch_refuses(const System& system) {
    if (one_system_fits(system)) return nullptr;
    if (!(system.dtype == DType::f32 ? fits<float>(system) : fits<double>(system))) return "systems of this length do not fit on the chip";
    return has_clusters() ? nullptr : "the on-chip kernels need compute capability 9.0";
}

// Arrays that are copied to the device lose their gaps: what is asked for here has to do for windows with halos as well.
std::size_t batch_scratch(const System& system) {
    return marks_bytes(system) + (system.accumulate ? apart_bytes(system) : 0) + (pivoted_in_passes(system) ? two_pass_scratch(system) : pivoted_scratch(system)) +
           (enough_for_halos(system) ? halos_scratch(system) : 0);
}

bool batch_adds(const System& system) {
    if (system.in_place || system.systems() < 2 || batch_refuses(system)) return false;
    return system.dtype == DType::f32 ? adds_in_tiles<float>(system) : adds_in_tiles<double>(system);
}

void solve_batch(const System& system, const BatchLaunch& launch) {
    if (system.dtype == DType::f32) solve<float>(system, launch);
    else solve<double>(system, launch);
}

// In place, what windows have to give back is rhs to rounding, of so many rows as had been stored: bits would not repeat.
bool halos_before_batch(const System& system) { return !system.in_place && enough_for_halos(system) && several_in_halos(system); }

void solve_halos_and_batch(const System& system, const BatchLaunch& launch) {
    const BatchLaunch rest = solve_in_halos(system, launch, tridiagonal::Algorithm::thomas);
    if (rest.scratch_bytes > 0) solve<double>(system, rest, &launch.outcome->handed_over);
}

void solve_batch_where(const System& system, const BatchLaunch& launch, const unsigned long long* wanted) {
    if (system.dtype == DType::f32) solve<float>(system, launch, wanted);
    else solve<double>(system, launch, wanted);
}

bool solve_in_one_launch(const System& system, const BatchLaunch& launch) {
    if (one_system_fits(system)) return solve_one_system(system, launch), true;
    return system.dtype == DType::f32 ? solve_one_tile<float>(system, launch) : solve_one_tile<double>(system, launch);
}

}  // namespace trifold::cuda
