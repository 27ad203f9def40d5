// SPDX-License-Identifier: BSD-3-Clause
// Ragged batches: tiles of whole systems in a block's shared memory (ragged_tile.cuh); a block for a system that has one for itself, in shared memory or, pivoted, in scratch; and launches of their own
// for the longest, one after the other (path.hpp). Who takes what is decided from the offsets, on the host (ragged_plan.hpp); nothing is read back.
#include "backends/cuda/tridiagonal/general/ragged.hpp"

#include <algorithm>
#include <limits>

#include "backends/cuda/runtime/reset.hpp"
#include "backends/cuda/runtime/shared_memory.hpp"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/general/ragged_plan.hpp"
#include "backends/cuda/tridiagonal/general/ragged_tile.cuh"
#include "backends/cuda/tridiagonal/path.hpp"
#include "backends/cuda/tridiagonal/pivoted_block.cuh"
#include "families/tridiagonal/offsets.hpp"
#include "families/tridiagonal/plain.hpp"

namespace trifold::cuda {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::Operand;
using tridiagonal::System;

constexpr int tile_threads = 128, finite_threads = 256;

// Registers allow two blocks on a multiprocessor in double precision, and shared memory does up to half its rows.
template <class T>
constexpr int single_threads = sizeof(T) == 8 ? 256 : 512;

// So many rows that four blocks (FP32 five) share a multiprocessor: while some compute, others wait for memory.
template <class T>
constexpr int tile_rows = tile_threads * (sizeof(T) == 8 ? 9 : 17);

template <class T>
using Tile = RaggedTile<T, tile_threads, 8 * tile_threads>;
template <class T>
using Single = RaggedTile<T, single_threads<T>, 1>;

std::size_t up(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

template <class T>
__global__ void __launch_bounds__(tile_threads, 4) ragged_tile_kernel(const __grid_constant__ RaggedJob<T> job) {
    extern __shared__ __align__(16) unsigned char ragged_memory[];
    const Tile<T> tile{job, job.tile_rows, ragged_memory};
    for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * job.window; first < job.systems; first += static_cast<std::int64_t>(gridDim.x) * job.window)
        tile.solve_all(first, min(first + job.window, job.systems));
}

/// A system that no shared memory holds, with pivots. By all threads of a block.
template <class T>
__device__ __noinline__ void solve_in_scratch(const RaggedJob<T>* job, std::int64_t k, std::int64_t row, int n, BlockPivoting<T>* shared) {
    T* const scratch = job->scratch + static_cast<std::int64_t>(blockIdx.x) * job->scratch_rows * (job->adds ? 5 : 4);
    const Line<T> x = line_from(job->x, row), found = job->adds ? Line<T>{scratch + 4 * static_cast<std::int64_t>(n), T(0), 1} : x;
    const PivotedVerdict<T> verdict = pivot_by_block(line_from(job->lower, row), line_from(job->diag, row), line_from(job->upper, row), line_from(job->rhs, row), found, n, scratch, *shared);
    __syncthreads();  // all of `found` is there
    if (verdict.reason == Reason::exact && job->adds)
        for (int i = static_cast<int>(threadIdx.x); i < n; i += single_threads<T>) x.at(i) += found[i];
    if (threadIdx.x == 0) {
        if (verdict.reason != Reason::exact) report_failure(job->outcome, job->status, k, verdict.row, verdict.reason);
        else if (!job->pivots) report_rescued(job->outcome);
    }
    __syncthreads();
}

/// Systems k, k + blocks, … of a block, so that long ones beside each other are those of different blocks.
template <class T>
__global__ void __launch_bounds__(single_threads<T>, sizeof(T) == 8 ? 2 : 1) ragged_single_kernel(const __grid_constant__ RaggedJob<T> job) {
    constexpr int threads = single_threads<T>;
    extern __shared__ __align__(16) unsigned char ragged_memory[];
    __shared__ bool wanted[threads];
    const Single<T> tile{job, job.chip_rows, ragged_memory};
    const auto system = [&](std::int64_t looked, int thread) { return blockIdx.x + (looked + thread) * gridDim.x; };
    for (std::int64_t looked = 0; system(looked, 0) < job.systems; looked += threads) {
        const std::int64_t own = system(looked, static_cast<int>(threadIdx.x));
        const std::int64_t its_rows = own < job.systems ? job.offsets[own + 1] - job.offsets[own] : 0;
        const bool mine = its_rows > job.tile_rows && its_rows < job.least_alone;
        wanted[threadIdx.x] = mine;
        if (!__syncthreads_or(mine)) continue;
        for (int t = 0; t < threads; ++t) {
            if (!wanted[t]) continue;
            const std::int64_t k = system(looked, t), row = job.offsets[k];
            const int n = static_cast<int>(job.offsets[k + 1] - row);
            if (n <= job.chip_rows) tile.solve_one(k, row, n);
            else solve_in_scratch(&job, k, row, n, reinterpret_cast<BlockPivoting<T>*>(ragged_memory));
        }
        __syncthreads();  // `wanted` is written again
    }
}

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
    limits.tile_rows = tile_rows<T>;
    int rows = single_threads<T> * Single<T>::most_chunk;
    constexpr int own = single_threads<T>;  // ragged_single_kernel's, beside the tile
    while (rows > tile_rows<T> && Single<T>::bytes(rows) + own > shared_memory_of_block()) --rows;
    limits.chip_rows = rows;
    return limits;
}

RaggedLimits limits_for(const System& system) { return system.dtype == DType::f32 ? limits_of_device<float>() : limits_of_device<double>(); }

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

/// of_one: for a system that gets launches of its own.
std::size_t scratch(const System& system, Algorithm algorithm, std::size_t (*of_one)(const System&, Algorithm)) {
    const RaggedLimits limits = limits_for(system);
    const RaggedPlan plan = plan_ragged(system, limits);
    const std::size_t each = scratch_each(system, plan, limits);
    std::size_t most = each * static_cast<std::size_t>(single_blocks(plan, limits, each));
    each_alone(system, plan, [&](const System& one) { most = std::max(most, up(sizeof(DeviceOutcome)) + up(of_one(one, algorithm))); });
    return tridiagonal::offsets_bytes(system) + up(most);
}

template <class T>
Line<T> line_of_all(const Operand& operand) {
    return operand.kind == Operand::Kind::scalar ? Line<T>{nullptr, static_cast<T>(operand.value), 0} : Line<T>{static_cast<T*>(operand.data), T(0), operand.row_stride};
}

template <class T>
void solve(const System& system, Algorithm algorithm, const BatchLaunch& launch) {
    const RaggedLimits limits = limits_for(system);
    const RaggedPlan plan = plan_ragged(system, limits);
    auto* const scratch = static_cast<unsigned char*>(launch.scratch);
    const std::size_t before = tridiagonal::offsets_bytes(system), each = scratch_each(system, plan, limits);
    reset_outcome(launch.outcome, system.rows, system.systems(), static_cast<int>(algorithm == Algorithm::lu ? Algorithm::lu : Algorithm::thomas), launch.stream);
    if (launch.status) enqueue_fill(launch.status, static_cast<int>(Reason::exact), static_cast<std::size_t>(system.systems()), launch.stream);

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
        allow_shared_memory(ragged_single_kernel<T>, shared_memory_of_block() - single_threads<T>);
    });
    constexpr std::int64_t most_blocks = 1 << 20;
    enqueue_kernel(ragged_tile_kernel<T>, static_cast<unsigned>(std::min(plan.windows, most_blocks)), tile_threads, static_cast<std::size_t>(Tile<T>::bytes(tile_rows<T>)), launch.stream, job);
    if (plan.singles > 0) {
        const auto blocks = static_cast<unsigned>(single_blocks(plan, limits, each));
        const int bytes = std::max(Single<T>::bytes(job.chip_rows), static_cast<int>(sizeof(BlockPivoting<T>)));
        enqueue_kernel(ragged_single_kernel<T>, blocks, single_threads<T>, static_cast<std::size_t>(bytes), launch.stream, job);
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

std::size_t ragged_scratch(const System& system, Algorithm algorithm) { return scratch(system, algorithm, scratch_for); }
std::size_t ragged_least_scratch(const System& system, Algorithm algorithm) { return scratch(system, algorithm, least_scratch); }

void solve_ragged(const System& system, Algorithm algorithm, const BatchLaunch& launch) {
    if (system.dtype == DType::f32) solve<float>(system, algorithm, launch);
    else solve<double>(system, algorithm, launch);
}

void check_finite_ragged(const System& system, const BatchLaunch& launch) {
    if (system.dtype == DType::f32) look<float>(system, launch);
    else look<double>(system, launch);
}

}  // namespace trifold::cuda
