// SPDX-License-Identifier: BSD-3-Clause
// x[i] += y[i] of every system that was solved; y lies in scratch without gaps. Words per row: 2 read, 1 written, at the roof of a stream with that mix.
#include "backends/cuda/tridiagonal/general/added.hpp"

#include "backends/cuda/tridiagonal/general/packed.hpp"
#include "backends/cuda/tridiagonal/general/pieces.cuh"
#include "backends/cuda/tridiagonal/path.hpp"

namespace trifold::cuda {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::System;

std::size_t up(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

std::size_t status_bytes(const System& system) { return up(static_cast<std::size_t>(system.systems())); }
std::size_t own_bytes(const System& system) { return status_bytes(system) + up(static_cast<std::size_t>(Packed(system).elements) * size_of(system.dtype)); }

System into(const System& system, void* y) {
    System plain = system;
    plain.x = Packed(system).at(y);
    plain.accumulate = plain.in_place = false;
    return plain;
}

template <class T>
struct Job {
    Pieces pieces;
    Levels levels;
    Source<T> x, y;
    const std::int8_t* status;
};

template <class T>
__global__ void __launch_bounds__(Pieces::block_threads) add_kernel(const __grid_constant__ Job<T> job) {
    job.pieces.each([&](std::int64_t k, std::int64_t first, std::int64_t end, int step, bool) {
        std::int64_t index[4];
        job.levels.indices(k, index);
        if (job.status[job.levels.number_of(index)] <= 0) return;
        const Line<T> x = line_of(job.x, index), y = line_of(job.y, index);
        for (std::int64_t i = first; i < end; i += step) x.at(i) += y[i];
    });
}

template <class T>
void add(const System& system, const System& plain, const BatchLaunch& launch) {
    const Job<T> job{Pieces(system), Levels(system), Source<T>(system.x), Source<T>(plain.x), launch.status};
    enqueue_kernel(add_kernel<T>, job.pieces.blocks(), Pieces::block_threads, 0, launch.stream, job);
}

}  // namespace

std::size_t added_scratch(const System& system) {
    const System plain = into(system, nullptr);
    return own_bytes(system) + scratch_for(plain, Algorithm::automatic);
}

std::size_t added_least_scratch(const System& system) {
    const System plain = into(system, nullptr);
    return own_bytes(system) + least_scratch(plain, Algorithm::automatic);
}

void solve_added(const System& system, const BatchLaunch& launch) {
    auto* const scratch = static_cast<unsigned char*>(launch.scratch);
    const System plain = into(system, scratch + status_bytes(system));
    BatchLaunch inner = launch;
    if (!inner.status) inner.status = reinterpret_cast<std::int8_t*>(scratch) - system.number;
    inner.scratch = scratch + own_bytes(system), inner.scratch_bytes = launch.scratch_bytes - own_bytes(system);
    enqueue_path(path_within(plain, Algorithm::automatic, inner.scratch_bytes), plain, inner);
    if (system.dtype == DType::f32) add<float>(system, plain, inner);
    else add<double>(system, plain, inner);
}

}  // namespace trifold::cuda
