// SPDX-License-Identifier: BSD-3-Clause
// What a step in two passes through memory cannot beat: their reads and writes of the case's own arrays, with nothing computed. The first one copies an
// array, the second reads two and writes one of them: 5 words per point, whether a mesh has two axes or three.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "bench/cuda/gpu.cuh"

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

}  // namespace trifold::bench
