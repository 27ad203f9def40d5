// SPDX-License-Identifier: BSD-3-Clause
// What a step in two passes through memory cannot beat: their reads and writes of the case's own arrays, with nothing computed. The first one copies an
// array, the second reads two and writes one of them: 5 words per point, whether a mesh has two axes or three (boxes of which a step is one pass can). And, in three dimensions, what no run in the order of the kernels can beat: these
// kernels with their copies, loads, stores, launches and waiting for each other's places, and nothing computed.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "bench/cuda/gpu.cuh"
#include "bench/cuda/heat_kernels.hpp"

namespace trifold::bench {

/// Seconds of `steps` steps. Overwrites both arrays.
template <class T>
double seconds_of_streams(T* u, T* values, std::int64_t points, int steps) {
    const std::size_t bytes = static_cast<std::size_t>(points) * sizeof(T);
    const void *const copied[4] = {u, u, u, u}, *const updated[4] = {values, u, u, u};
    const StreamRoof copy(copied, values, bytes, 1), update(updated, u, bytes, 2);
    EventTimer time;
    const auto several = [&](int count) {
        return time([&] {
            for (int k = 0; k < count; ++k) {
                copy.pass();
                update.pass();
            }
        });
    };
    several(2);
    const int count = std::clamp(static_cast<int>(10 / several(1)), 2, steps);
    std::vector<float> ms;
    for (int round = 0; round < 5; ++round) ms.push_back(several(count));
    return median(ms) / 1e3 / count * steps;
}

/// Seconds of `steps` steps. Overwrites what the problem's fields hold.
inline double seconds_of_moves(int device, const MeshProblem& problem, int steps, int rounds) {
    using Clock = std::chrono::steady_clock;
    const cuda::Table& table = cuda_table();
    const mesh::Checked checked = mesh::check(problem);
    Failure failure;
    tridiagonal::Launch launch;
    std::size_t bytes = 0;
    if (!table.tridiagonal(device)->mesh_scratch(device, checked, &bytes, failure)) failure.raise("moves alone");
    check(cudaMalloc(&launch.scratch, bytes), "scratch of moves alone");
    std::vector<float> seconds;
    bool good = table.mesh_moves(device, checked, 2, launch, failure);
    for (int round = 0; good && round < rounds; ++round) {
        const auto start = Clock::now();
        good = table.mesh_moves(device, checked, steps, launch, failure);
        seconds.push_back(std::chrono::duration<float>(Clock::now() - start).count());
    }
    cudaFree(launch.scratch);
    if (!good) failure.raise("moves alone");
    return median(seconds);
}

}  // namespace trifold::bench
