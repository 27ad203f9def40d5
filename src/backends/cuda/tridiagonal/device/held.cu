// SPDX-License-Identifier: BSD-3-Clause
// One system that all multiprocessors hold, from the host: how many rows a lane has, what is launched.
#include "backends/cuda/tridiagonal/device/held.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "backends/cuda/runtime/launches.hpp"
#include "backends/cuda/runtime/shared_memory.hpp"
#include "backends/cuda/tridiagonal/device/held_kernel.cuh"

namespace trifold::cuda {
namespace {

using namespace held;
using tridiagonal::Operand;
using tridiagonal::System;

// Fewer are one cluster's.
constexpr std::int64_t least_rows = 102'400;
// As of windows (device/windows.cu).
constexpr double accepted_roundoffs = 16, neglect_margin = 4;

int blocks_there() { return std::min(multiprocessors_of_current(), most_blocks); }

/// Odd.
template <class T>
int rows_of_lane(std::int64_t rows) {
    const std::int64_t all = std::int64_t{blocks_there()} * warps * lanes;
    return static_cast<int>(std::min<std::int64_t>((rows + all - 1) / all, most_rows<T> + 1)) | 1;
}

bool device_can() {
    static OfDevice known;
    return known([](int device) {
        int major = 0, shared = 0, cooperative = 0;
        return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess && cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) == cudaSuccess &&
               cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device) == cudaSuccess && major >= 9 && shared >= most_shared_bytes && cooperative;
    }) != 0;
}

template <class T>
int solve(const System& system, const BatchLaunch& launch) {
    static_assert(Memory<T>::bytes(most_rows<T>, true) <= most_shared_bytes && most_blocks * sizeof(News<T>) <= held_scratch);
    const double u = std::numeric_limits<T>::epsilon() / 2, tolerance = std::max(launch.tolerance, u);
    Job<T> job{.input = {Source<T>(system.lower), Source<T>(system.diag), Source<T>(system.upper), Source<T>(system.rhs)}, .x = Source<T>(system.x)};
    job.rows = system.rows, job.rows_of_lane = rows_of_lane<T>(system.rows);
    job.tight = Memory<T>::bytes(job.rows_of_lane, false) > most_shared_bytes;
    const auto whole = [](const Source<T>& of) { return of.data && of.row_stride == 1 && reinterpret_cast<std::uintptr_t>(of.data) % 16 == 0; };
    for (unsigned k = 0; k < 4; ++k) job.whole |= static_cast<unsigned>(whole(job.input[k])) << k;
    job.whole |= static_cast<unsigned>(whole(job.x)) << 4;
    job.in_place = system.in_place;
    job.accept = static_cast<T>(std::max(accepted_roundoffs * u, tolerance)), job.roundoff = static_cast<T>(u);
    job.negligible = static_cast<T>(std::ldexp(tolerance, -static_cast<int>(neglect_margin)));
    job.news = static_cast<News<T>*>(launch.scratch);
    job.outcome = launch.outcome, job.fresh = fresh_outcome(system.rows, 1, static_cast<int>(tridiagonal::Algorithm::thomas));
    static PerDevice prepared;
    prepared.once([&] { allow_shared_memory(held_kernel<T>, most_shared_bytes); });
    const std::int64_t of_block = Memory<T>::pitch(job.rows_of_lane);
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>((system.rows + of_block - 1) / of_block)), config.blockDim = dim3(threads);
    config.dynamicSmemBytes = Memory<T>::bytes(job.rows_of_lane, job.tight);
    config.stream = launch.stream;
    cudaLaunchAttribute cooperative;
    cooperative.id = cudaLaunchAttributeCooperative, cooperative.val.cooperative = 1;
    config.attrs = &cooperative, config.numAttrs = 1;
    enqueue_kernel(config, held_kernel<T>, job);
    return static_cast<int>(config.gridDim.x);
}

}  // namespace

bool held_fits(const System& system) {
    return system.levels == 0 && !system.periodic && !system.accumulate && system.rhs.kind == Operand::Kind::view && system.x.row_stride != 0 && system.rows > least_rows && device_can() &&
           (system.dtype == DType::f32 ? rows_of_lane<float>(system.rows) <= most_rows<float> : rows_of_lane<double>(system.rows) <= most_rows<double>);
}

int solve_held(const System& system, const BatchLaunch& launch) { return system.dtype == DType::f32 ? solve<float>(system, launch) : solve<double>(system, launch); }

}  // namespace trifold::cuda
