// SPDX-License-Identifier: BSD-3-Clause
// Ragged batches. Where rows lie side by side: runs of systems without pivots (ragged_runs.hpp), and what they leave with pivots (ragged_marked.cuh, ragged_blocks.cuh). Elsewhere, and on older devices: tiles of whole systems in a block's
// shared memory, and a block for a system that has one for itself (ragged_blocks.cuh). Launches of their own for the longest, one after the other (path.hpp). Who takes what is decided on the host (ragged_plan.hpp); nothing is read back.
#include "backends/cuda/tridiagonal/general/ragged.hpp"

#include <algorithm>
#include <limits>

#include "backends/cuda/runtime/reset.hpp"
#include "backends/cuda/runtime/shared_memory.hpp"
#include "backends/cuda/tridiagonal/block/residency.hpp"
#include "backends/cuda/tridiagonal/general/ragged_blocks.cuh"
#include "backends/cuda/tridiagonal/general/ragged_marked.cuh"
#include "backends/cuda/tridiagonal/general/ragged_plan.hpp"
#include "backends/cuda/tridiagonal/path.hpp"
#include "families/tridiagonal/offsets.hpp"
#include "families/tridiagonal/plain.hpp"

namespace trifold::cuda {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::Operand;
using tridiagonal::System;

constexpr int finite_threads = 256;

std::size_t up(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

/// What became of a system that was solved alone, as its number in the batch says.
__global__ void take_outcome(const DeviceOutcome* one, DeviceOutcome* all, std::int64_t system) {
    if (one->failures > 0) {
        const auto width = static_cast<unsigned long long>(one->rows) + 1;
        const auto row = static_cast<std::int64_t>(one->first / 8 % width) - 1;
        report_failure(all, nullptr, system, row, static_cast<Reason>(-static_cast<int>(one->first % 8)));
    } else if (one->rescued > 0) {
        report_rescued(all);
    }
}

template <class T>
struct FiniteJob {
    const std::int64_t* offsets;
    std::int64_t systems, first, end;  ///< rows
    Line<T> lower, diag, upper, rhs;
    DeviceOutcome* outcome;
};

/// A thread a row. Whose it is matters only where something is not finite: a coupling across the ends of systems is not looked at.
template <class T>
__global__ void __launch_bounds__(finite_threads) ragged_finite_kernel(const __grid_constant__ FiniteJob<T> job) {
    const auto finite = [](T value) { return value * T(0) == T(0); };
    for (std::int64_t i = job.first + static_cast<std::int64_t>(blockIdx.x) * finite_threads + threadIdx.x; i < job.end; i += static_cast<std::int64_t>(gridDim.x) * finite_threads) {
        const bool inside = finite(job.diag[i]) && finite(job.rhs[i]), below = i == job.first || finite(job.lower[i]), above = i + 1 == job.end || finite(job.upper[i]);
        if (inside && below && above) continue;
        std::int64_t k = 0, behind = job.systems;  // offsets[k] ≤ i < offsets[behind]
        while (behind - k > 1) {
            const std::int64_t middle = k + (behind - k) / 2;
            (job.offsets[middle] <= i ? k : behind) = middle;
        }
        const bool counts = !inside || (!below && i > job.offsets[k]) || (!above && i + 1 < job.offsets[k + 1]);
        if (counts) report_failure(job.outcome, nullptr, k, i - job.offsets[k], Reason::not_finite);
    }
}

int shared_memory_of_block() {
    static OfDevice known;
    return known([](int device) {
        int bytes = 48 * 1024;
        cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
        return bytes;
    });
}

template <class T>
RaggedLimits limits_of_device() {
    RaggedLimits limits;
    limits.multiprocessors = multiprocessors_of_current();
    limits.tile_rows = tile_rows<T>, limits.tile_warps = tile_threads / 32;
    int rows = single_threads<T> * Single<T>::most_chunk;
    constexpr int own = single_threads<T>;  // ragged_single_kernel's, beside the tile
    const int most = shared_memory_of_block();
    while (rows > tile_rows<T> && Single<T>::bytes(rows) + own > most) --rows;
    limits.chip_rows = rows;
    return limits;
}

RaggedLimits limits_for(const System& system) {
    RaggedLimits limits = system.dtype == DType::f32 ? limits_of_device<float>() : limits_of_device<double>();
    if (runs_take(system)) limit_runs(limits, system.dtype);
    return limits;
}

/// Of ragged_single_kernel, where a system is in scratch: as many as there are multiprocessors for, but no more than half a gigabyte of it, unless that leaves too few.
std::int64_t single_blocks(const RaggedPlan& plan, const RaggedLimits& limits, std::size_t bytes_each) {
    constexpr std::size_t budget = std::size_t{1} << 29;
    constexpr std::int64_t least = 8;
    std::int64_t blocks = std::min<std::int64_t>(plan.singles, 2 * limits.multiprocessors);
    if (bytes_each > 0) blocks = std::min(blocks, std::max<std::int64_t>(static_cast<std::int64_t>(budget / bytes_each), least));
    return std::max<std::int64_t>(blocks, 1);
}

/// Of a block of ragged_single_kernel; 0 where shared memory does.
std::size_t scratch_each(const System& system, const RaggedPlan& plan, const RaggedLimits& limits) {
    if (plan.longest_single <= limits.chip_rows) return 0;
    return static_cast<std::size_t>(plan.longest_single) * (system.accumulate ? 5 : 4) * size_of(system.dtype);
}

/// Calls visit(system) for those that get launches of their own.
template <class Visit>
void each_alone(const System& system, const RaggedPlan& plan, Visit visit) {
    std::int64_t left = plan.alone;
    for (std::int64_t k = 0; left > 0; ++k)
        if (system.offsets[k + 1] - system.offsets[k] >= plan.least_alone) {
            System one = tridiagonal::system_at(system, k);
            one.top_right = one.bottom_left = {};  // of rings
            visit(one), --left;
        }
}

/// How a batch is solved, and where what is needed for that lies in scratch, behind the offsets.
struct Planned {
    RaggedLimits limits;
    RaggedPlan plan;
    std::size_t runs = 0, rest = 0, each = 0;  ///< where the scratch of runs begins, and that of blocks or of systems alone; bytes of a block's

    explicit Planned(const System& system) : limits(limits_for(system)), plan(plan_ragged(system, limits)) {
        runs = tridiagonal::offsets_bytes(system), rest = runs + (has_runs() ? runs_scratch(system, plan) : 0);
        each = scratch_each(system, plan, limits);
    }
    bool has_runs() const { return plan.runs.longest > 0; }

    /// of_one: for a system that gets launches of its own.
    std::size_t bytes(const System& system, Algorithm algorithm, std::size_t (*of_one)(const System&, Algorithm)) const {
        std::size_t most = each * static_cast<std::size_t>(single_blocks(plan, limits, each));
        each_alone(system, plan, [&](const System& one) { most = std::max(most, up(sizeof(DeviceOutcome)) + up(of_one(one, algorithm))); });
        return rest + up(most);
    }
};

/// Of an array that is copied to the device, which loses its gaps.
bool has_gaps(const Operand& operand) { return operand.kind == Operand::Kind::view && operand.row_stride != 1 && operand.row_stride != 0; }

/// For the system as it is given, and as it is once it is copied: runs take no gaps.
std::size_t bytes_of_either(const System& system, Algorithm algorithm, std::size_t (*of_one)(const System&, Algorithm)) {
    System copied = system;
    bool differs = false;
    for (Operand* const operand : {&copied.lower, &copied.diag, &copied.upper, &copied.rhs, &copied.x})
        if (has_gaps(*operand)) operand->row_stride = 1, differs = true;
    const std::size_t bytes = Planned(system).bytes(system, algorithm, of_one);
    return differs ? std::max(bytes, Planned(copied).bytes(copied, algorithm, of_one)) : bytes;
}

template <class T>
Line<T> line_of_all(const Operand& operand) {
    return operand.kind == Operand::Kind::scalar ? Line<T>{nullptr, static_cast<T>(operand.value), 0} : Line<T>{static_cast<T*>(operand.data), T(0), operand.row_stride};
}

template <class T>
void share_by_clusters(const RaggedJob<T>& job, const RaggedLeft& left, cudaStream_t stream) {
    constexpr auto kernel = ragged_cluster_kernel<T>;
    static PerDevice prepared;
    prepared.once([] {
        allow_shared_memory(kernel);
        cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    });
    const auto blocks = static_cast<unsigned>(left.cluster_blocks);
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks), config.blockDim = dim3(single_threads<T>);
    config.dynamicSmemBytes = static_cast<std::size_t>(Single<T>::bytes(job.chip_rows));
    config.stream = stream;
    cudaLaunchAttribute attributes[2] = {cluster_of(blocks)};
    while_the_kernel_before_ends(attributes[1]);
    config.attrs = attributes, config.numAttrs = 1;
    static Residency residency;
    config.gridDim = dim3(static_cast<unsigned>(std::min<std::int64_t>(residency(kernel, config, blocks), left.most)) * blocks);
    config.numAttrs = 2;
    enqueue_kernel(config, kernel, job, left);
}

template <class T>
void solve(const System& system, Algorithm algorithm, const Planned& planned, const BatchLaunch& launch) {
    const RaggedLimits& limits = planned.limits;
    const RaggedPlan& plan = planned.plan;
    auto* const scratch = static_cast<unsigned char*>(launch.scratch);
    const bool runs = planned.has_runs();
    const std::size_t before = planned.rest;
    if (runs) solve_runs(system, plan, algorithm == Algorithm::lu, reinterpret_cast<const std::int64_t*>(scratch), scratch + planned.runs, launch);
    else reset_outcome(launch.outcome, system.rows, system.systems(), static_cast<int>(algorithm == Algorithm::lu ? Algorithm::lu : Algorithm::thomas), launch.stream);
    if (!runs && launch.status) enqueue_fill(launch.status, static_cast<int>(Reason::exact), static_cast<std::size_t>(system.systems()), launch.stream);

    RaggedJob<T> job;
    job.offsets = reinterpret_cast<const std::int64_t*>(scratch);
    job.systems = system.systems(), job.window = plan.window;
    job.least_alone = plan.least_alone;
    job.tile_rows = static_cast<int>(limits.tile_rows), job.chip_rows = static_cast<int>(std::clamp(plan.longest_single, std::int64_t{1}, limits.chip_rows));
    job.lower = line_of_all<T>(system.lower), job.diag = line_of_all<T>(system.diag), job.upper = line_of_all<T>(system.upper);
    job.rhs = line_of_all<T>(system.rhs), job.x = line_of_all<T>(system.x);
    job.adds = system.accumulate, job.pivots = algorithm == Algorithm::lu;
    job.scratch = reinterpret_cast<T*>(scratch + before), job.scratch_rows = plan.longest_single;
    job.status = launch.status, job.outcome = launch.outcome;

    static PerDevice prepared;
    prepared.once([] {
        allow_shared_memory(ragged_tile_kernel<T>, Tile<T>::bytes(tile_rows<T>));
        allow_shared_memory(ragged_marked_kernel<T>, Tile<T>::bytes(tile_rows<T>));
        allow_shared_memory(ragged_listed_kernel<T>, Tile<T>::bytes(tile_rows<T>));
        allow_shared_memory(ragged_single_kernel<T>, shared_memory_of_block() - single_threads<T>);
    });
    const auto tile_bytes = static_cast<std::size_t>(Tile<T>::bytes(tile_rows<T>));
    const auto singles = [&](const RaggedJob<T>& of) {
        const int bytes = std::max(Single<T>::bytes(of.chip_rows), static_cast<int>(sizeof(BlockPivoting<T>)));
        enqueue_kernel(ragged_single_kernel<T>, static_cast<unsigned>(single_blocks(plan, limits, planned.each)), single_threads<T>, static_cast<std::size_t>(bytes), launch.stream, of);
    };
    if (runs) {
        // What they have left, by as many blocks as are there at a time.
        RaggedLeft left = left_by_runs(system, plan, scratch + planned.runs);
        if (job.chip_rows < plan.longest_single) left.cluster_blocks = plan.longest_single > 8 * limits.chip_rows ? 16 : 8, left.most_cluster_rows = left.cluster_blocks * limits.chip_rows;
        const auto blocks = 4 * limits.multiprocessors;
        RaggedJob<T> of_list = job;
        of_list.list = left.large.systems, of_list.listed = left.large.count;
        launch_after(ragged_marked_kernel<T>, static_cast<unsigned>(blocks), tile_threads, tile_bytes, launch.stream, of_list, left);
        if (left.most > 0) launch_after(ragged_listed_kernel<T>, static_cast<unsigned>(std::min<std::int64_t>(blocks, left.most)), tile_threads, tile_bytes, launch.stream, of_list, left);
        if (left.most_cluster_rows > 0) share_by_clusters(of_list, left, launch.stream);
        if (plan.singles > 0) singles(of_list);
    } else {
        enqueue_kernel(ragged_tile_kernel<T>, static_cast<unsigned>(std::min<std::int64_t>(plan.windows, 1 << 20)), tile_threads, tile_bytes, launch.stream, job);
        if (plan.singles > 0) singles(job);
    }
    each_alone(system, plan, [&](const System& one) {
        BatchLaunch alone = launch;
        alone.outcome = reinterpret_cast<DeviceOutcome*>(scratch + before);
        alone.scratch = scratch + before + up(sizeof(DeviceOutcome)), alone.scratch_bytes = launch.scratch_bytes - before - up(sizeof(DeviceOutcome));
        enqueue_path(path_within(one, algorithm, alone.scratch_bytes), one, alone);
        enqueue_kernel(take_outcome, 1, 1, 0, launch.stream, alone.outcome, launch.outcome, one.number);
    });
}

template <class T>
void look(const System& system, const BatchLaunch& launch) {
    const FiniteJob<T> job{static_cast<const std::int64_t*>(launch.scratch), system.systems(), system.offsets[0], system.offsets[system.ragged_systems], line_of_all<T>(system.lower),
                           line_of_all<T>(system.diag), line_of_all<T>(system.upper), line_of_all<T>(system.rhs), launch.outcome};
    const auto blocks = static_cast<unsigned>(std::clamp<std::int64_t>((job.end - job.first + finite_threads - 1) / finite_threads, 1, 1 << 14));
    enqueue_kernel(ragged_finite_kernel<T>, blocks, finite_threads, 0, launch.stream, job);
}

}  // namespace

const char* ragged_refuses(const System& system, Algorithm algorithm) {
    if (system.periodic) return "this device's kernels do not take ragged batches of periodic systems";
    System plain = system;
    plain.offsets = nullptr;
    if (algorithm == Algorithm::automatic) plain.accumulate = false;
    if (const char* why = tridiagonal::why_not_plain(plain)) return why;
    if (algorithm != Algorithm::automatic && algorithm != Algorithm::lu) return "this device's kernels take ragged batches by 'automatic' and 'lu'";
    // System and row are one number where a failure is named (runtime/outcome.hpp).
    constexpr double most = 0x1p59;
    if (static_cast<double>(system.systems()) * static_cast<double>(system.rows + 1) > most) return "this device's kernels do not take ragged batches of so many systems beside one so long";
    return nullptr;
}

std::size_t ragged_scratch(const System& system, Algorithm algorithm) { return bytes_of_either(system, algorithm, scratch_for); }
std::size_t ragged_least_scratch(const System& system, Algorithm algorithm) { return bytes_of_either(system, algorithm, least_scratch); }

bool solve_ragged(const System& system, Algorithm algorithm, const BatchLaunch& launch) {
    const Planned planned(system);
    if (launch.scratch_bytes < planned.bytes(system, algorithm, least_scratch)) return false;
    if (system.dtype == DType::f32) solve<float>(system, algorithm, planned, launch);
    else solve<double>(system, algorithm, planned, launch);
    return true;
}

void check_finite_ragged(const System& system, const BatchLaunch& launch) {
    if (system.dtype == DType::f32) look<float>(system, launch);
    else look<double>(system, launch);
}

}  // namespace trifold::cuda
