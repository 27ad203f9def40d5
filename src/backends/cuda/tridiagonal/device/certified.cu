// SPDX-License-Identifier: BSD-3-Clause
// The certified pass from the host: how a system is cut, what is launched. Nothing waits; every kernel finds out on the device whether it is needed.
#include "backends/cuda/tridiagonal/device/certified.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "backends/cuda/runtime/launches.hpp"
#include "backends/cuda/runtime/shared_memory.hpp"
#include "backends/cuda/tridiagonal/device/certified_kernel.cuh"
#include "backends/cuda/tridiagonal/device/held.hpp"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/device/windows.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::cuda {
namespace {

using namespace certified;
using tridiagonal::Operand;
using tridiagonal::System;

constexpr int most_blocks = 1024;

/// Where the sweep concludes: seams of so few windows its last block looks at, two per thread.
constexpr int few_windows = 512;

// Accepted residual of a row in units of roundoff, against (|a| + |b| + |c|) max|x| nearby: elimination leaves 1 to 10.
constexpr double accepted_roundoffs = 16;
// What may be left of the unknown beyond a halo: at least this much less than the tolerance; how far lanes are coupled to each other.
constexpr double halo_margin = 4, lane_margin = 42;
// In place: an error of x that is no larger, relative to it, says how large x is.
constexpr double known = 0x1p-6;

std::size_t up(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

template <class T>
int chunks_of(const System& system) { return static_cast<int>((system.rows * system.systems() + Shape<T>::rows - 1) / Shape<T>::rows); }

int kept_of(int warps) { return warps * (lanes - 2 * halo); }

/// Scratch: seams, maxima of the blocks, and in place flags and what is saved of rhs beside seams; then that of solve_windows, in which the rhs of whole windows lies for as long as that has not begun.
template <class T>
struct Parts {
    std::size_t blocks, stored, inner, saved, rest, kept_rhs, all;

    explicit Parts(const System& system) {
        using Stages = Stage<T, Shape<T>::rows, Shape<T>::warps>;
        const auto windows = static_cast<std::size_t>((chunks_of<T>(system) + kept_of(Shape<T>::warps) - 1) / kept_of(Shape<T>::warps));
        const std::size_t beside_seams = windows * static_cast<std::size_t>(Stages::saved_elements()) * sizeof(T);
        blocks = up(windows * sizeof(Seam<T>));
        stored = blocks + up(most_blocks * sizeof(Maxima<T>));
        inner = stored + (system.in_place ? up(windows + 1) : 0);
        saved = inner + (system.in_place ? up(windows * Shape<T>::warps * 2 * sizeof(T)) : 0);
        rest = saved + (system.in_place ? up(beside_seams) : 0);
        all = rest + windows_scratch(system), kept_rhs = all;
        if (!system.in_place) return;
        kept_rhs = rest + windows_kept_at(system);
        all = std::max(all, kept_rhs + windows * static_cast<std::size_t>(kept_of(Shape<T>::warps) * Shape<T>::rows) * sizeof(T));
    }
};

template <class T>
Input<T> input_of(const Operand& from) {
    using Path = typename Input<T>::Path;
    Input<T> to;
    if (from.kind == Operand::Kind::scalar) {
        to.value = static_cast<T>(from.value);
        return to;
    }
    to.data = static_cast<const T*>(from.data);
    to.row_stride = from.row_stride;
    to.path = from.row_stride == 1 && reinterpret_cast<std::uintptr_t>(from.data) % 16 == 0 ? Path::bulk : Path::elements;
    return to;
}

/// The scratch behind its own, for what comes next; none where that is too small. left: where the kernel behind it may conclude, from what, if it shall.
template <class T>
BatchLaunch solve(const System& system, const BatchLaunch& launch, tridiagonal::Algorithm branch, Verdict<T>* left = nullptr) {
    constexpr int R = Shape<T>::rows, W = Shape<T>::warps;
    const Parts<T> parts(system);
    BatchLaunch rest = launch;
    rest.scratch_bytes = 0;
    if (launch.scratch_bytes < (system.in_place ? parts.all : parts.rest)) return rest;
    auto* const scratch = static_cast<unsigned char*>(launch.scratch);
    const int multiprocessors = multiprocessors_of_current();

    const double u = std::numeric_limits<T>::epsilon() / 2, tolerance = std::max(launch.tolerance, u);
    Job<T> job;
    const Operand* const operands[4] = {&system.lower, &system.diag, &system.upper, &system.rhs};
    job.all_bulk = true;
    for (int k = 0; k < 4; ++k) {
        job.input[k] = input_of<T>(*operands[k]);
        job.all_bulk = job.all_bulk && job.input[k].path == Input<T>::Path::bulk;
    }
    job.x = static_cast<T*>(system.x.data), job.x_stride = system.x.row_stride;
    job.bulk_x = job.x_stride == 1 && reinterpret_cast<std::uintptr_t>(job.x) % 16 == 0;
    job.rows = system.rows * system.systems(), job.chunks = chunks_of<T>(system);
    job.each = system.levels ? static_cast<int>(system.rows) : 0;
    job.strict = static_cast<float>(std::log2(tolerance) - lane_margin), job.enough = static_cast<int>(std::ceil(log_unit * (halo_margin - std::log2(tolerance))));
    job.accept = static_cast<T>(std::max(accepted_roundoffs * u, tolerance));
    job.least_known = static_cast<T>(known / (2 * static_cast<double>(job.accept) + 8 * u));
    job.seams = reinterpret_cast<Seam<T>*>(scratch);
    job.outcome = launch.outcome;
    job.fresh = fresh_outcome(system.rows, system.systems(), static_cast<int>(branch));
    if (system.in_place) {
        job.stored = scratch + parts.stored;
        job.kept_rhs = reinterpret_cast<T*>(scratch + parts.kept_rhs), job.inner = reinterpret_cast<T*>(scratch + parts.inner), job.saved = reinterpret_cast<T*>(scratch + parts.saved);
    }

    constexpr auto sweep_of = [](bool several, bool in_place) {
        return several ? in_place ? sweep_kernel<T, R, W, true, true> : sweep_kernel<T, R, W, true, false>
                       : in_place ? sweep_kernel<T, R, W, false, true> : sweep_kernel<T, R, W, false, false>;
    };
    static PerDevice prepared;
    prepared.once([&] {
        for (const int kind : {0, 1, 2, 3}) {
            auto* const kernel = sweep_of(kind & 1, kind & 2);
            allow_shared_memory(kernel, shared_bytes<T, R, W>);
        }
        // A multiprocessor that has to change its carveout drains first: the small kernel keeps that of the large one.
        cudaFuncSetAttribute(restore_kernel<T, R, W>, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
    });
    job.kept = kept_of(W);
    job.windows = (job.chunks + job.kept - 1) / job.kept;
    const int blocks = std::min({job.windows, multiprocessors, most_blocks});
    job.verdict = {.words = reinterpret_cast<unsigned*>(scratch + parts.blocks), .count = blocks, .several = job.each != 0, .accept = job.accept, .roundoff = static_cast<T>(u)};
    job.judged_next = left;
    job.all_judge = !left && job.windows > few_windows;
    if (job.judged_next) *left = job.verdict;
    job.wary = (job.windows / blocks + 15) / 16;
    const auto few = static_cast<unsigned>(std::min((job.windows + 7) / 8, 8 * multiprocessors));
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>(blocks)), config.blockDim = dim3(32 * W), config.dynamicSmemBytes = shared_bytes<T, R, W>;
    config.stream = launch.stream;
    cudaLaunchAttribute cooperative;
    cooperative.id = cudaLaunchAttributeCooperative, cooperative.val.cooperative = 1;
    config.attrs = &cooperative, config.numAttrs = 1;
    enqueue_kernel(config, sweep_of(job.each != 0, system.in_place), job);
    if (system.in_place) launch_after(restore_kernel<T, R, W>, few, 256, static_cast<std::size_t>(job.kept * R + 2) * sizeof(T), launch.stream, job);
    rest.scratch = scratch + parts.rest, rest.scratch_bytes = launch.scratch_bytes - parts.rest;
    return rest;
}

/// In place, x of a system that the second-level cache holds is kept apart until it is good: passes that give up have stored over the right-hand side by then what may be far larger than x, and in whatever order
/// blocks came. Longer ones would pay for two words a row.
bool kept_apart(const System& system) {
    constexpr std::int64_t most_bytes = 8 << 20;
    return system.in_place && system.systems() == 1 && system.rows * static_cast<std::int64_t>(size_of(system.dtype)) <= most_bytes;
}

System apart(const System& system, void* x) {
    System out = system;
    out.in_place = false, out.x.data = x, out.x.row_stride = 1;
    return out;
}

template <class T>
struct Kept {
    const T* from;
    T* x;
    std::int64_t row_stride, rows;
    const DeviceOutcome* outcome;
    bool where_handed_over;  ///< else x is there
};

template <class T>
__global__ void take_kernel(const __grid_constant__ Kept<T> kept) {
    after_the_kernel_before();
    if (kept.outcome->failures > 0 || (kept.where_handed_over && kept.outcome->handed_over == 0)) return;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < kept.rows; i += static_cast<std::int64_t>(gridDim.x) * blockDim.x) kept.x[i * kept.row_stride] = kept.from[i];
}

/// held: the system, in place or not, where all multiprocessors hold it: that comes before windows of any kind.
template <class T>
void solve_then_windows(const System& system, const BatchLaunch& launch, bool fall_back, const System* held) {
    if (held) {
        static_assert(most_blocks * sizeof(Maxima<T>) >= held_scratch);
        const Parts<T> parts(system);
        if (launch.scratch_bytes < parts.all) return;
        BatchLaunch rest = launch;
        rest.scratch = static_cast<unsigned char*>(launch.scratch) + parts.rest, rest.scratch_bytes = launch.scratch_bytes - parts.rest;
        const int blocks = solve_held(*held, launch);
        return solve_windows(system, rest, {.after_others = true, .blocks_before = blocks, .fall_back = fall_back});
    }
    Verdict<T> left;
    const BatchLaunch rest = solve<T>(system, launch, tridiagonal::Algorithm::certified, system.in_place ? nullptr : &left);
    solve_windows(system, rest, {.after_others = true, .halos = system.in_place ? nullptr : &left, .rows_of_half = lanes / 2 * Shape<T>::rows, .blocks_before = left.count, .fall_back = fall_back});
}

void solve_then_windows(const System& system, const BatchLaunch& launch, bool fall_back, const System* held) {
    if (system.dtype == DType::f32) solve_then_windows<float>(system, launch, fall_back, held);
    else solve_then_windows<double>(system, launch, fall_back, held);
}

}  // namespace

const char* certified_refuses(const System& system) {
    if (system.levels != 0) return "one pass with a bound is for one system";
    if (system.rhs.kind != Operand::Kind::view || system.x.row_stride == 0) return "the right-hand side is not an array";
    if (system.rows > std::int64_t{1} << 34) return "the system is too long";
    return windows_refuse(system);
}

bool several_in_halos(const System& system) {
    const auto follows = [&](const Operand& operand) {
        return operand.kind == Operand::Kind::view && operand.row_stride == 1 && operand.level_stride[0] == system.rows &&
               reinterpret_cast<std::uintptr_t>(operand.data) % 16 == 0;
    };
    constexpr int least = 32 * 192;  // a window and its halos see one end at most; shorter ones are on chip
    return system.levels == 1 && system.rows >= least && system.rows <= 1 << 30 && system.rows * system.systems() <= std::int64_t{1} << 34 &&
           follows(system.lower) && follows(system.diag) && follows(system.upper) && follows(system.rhs) && follows(system.x) && !windows_refuse(system);
}

std::size_t halos_scratch(const System& system) { return system.dtype == DType::f32 ? Parts<float>(system).rest : Parts<double>(system).rest; }

BatchLaunch solve_in_halos(const System& system, const BatchLaunch& launch, tridiagonal::Algorithm branch) {
    return system.dtype == DType::f32 ? solve<float>(system, launch, branch) : solve<double>(system, launch, branch);
}

std::size_t certified_scratch(const System& system) {
    const std::size_t own = system.dtype == DType::f32 ? Parts<float>(system).all : Parts<double>(system).all;
    return kept_apart(system) ? std::max(own, up(certified_scratch(apart(system, nullptr))) + static_cast<std::size_t>(system.rows) * size_of(system.dtype)) : own;
}

void solve_certified(const System& system, const BatchLaunch& launch, bool fall_back) {
    const System* const held = fall_back && held_fits(system) ? &system : nullptr;
    const std::size_t before = kept_apart(system) ? up(certified_scratch(apart(system, nullptr))) : 0;
    if (before == 0 || launch.scratch_bytes < before + static_cast<std::size_t>(system.rows) * size_of(system.dtype)) return solve_then_windows(system, launch, fall_back, held);
    char* const kept = static_cast<char*>(launch.scratch) + before;
    BatchLaunch rest = launch;
    rest.scratch_bytes = before;
    solve_then_windows(apart(system, kept), rest, fall_back, held);
    const auto take = [&]<class T>(T* from) {
        constexpr unsigned threads = 256, most_blocks_of_it = 1024;
        const auto blocks = static_cast<unsigned>(std::min<std::int64_t>((system.rows + threads - 1) / threads, most_blocks_of_it));
        launch_after(take_kernel<T>, blocks, threads, 0, launch.stream, Kept<T>{from, static_cast<T*>(system.x.data), system.x.row_stride, system.rows, launch.outcome, held != nullptr});
    };
    if (system.dtype == DType::f32) take(reinterpret_cast<float*>(kept));
    else take(reinterpret_cast<double*>(kept));
}

}  // namespace trifold::cuda
