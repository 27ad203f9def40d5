// SPDX-License-Identifier: BSD-3-Clause
// How many threads a piece of work is worth: waking and joining them takes some microseconds, on a machine that others use far more.
#pragma once

#include <algorithm>
#include <cstdint>

namespace trifold::cpu {

/// As many of `threads` as have `items_per_thread` of `items`; at least one.
constexpr int useful_threads(std::int64_t items, std::int64_t items_per_thread, int threads) {
    return static_cast<int>(std::clamp<std::int64_t>(items / items_per_thread, 1, std::max(threads, 1)));
}

/// Points of a step of sweeps over meshes, some 100 µs of one thread: threads meet up to several times a step.
constexpr std::int64_t points_per_thread = std::int64_t{1} << 16;

}  // namespace trifold::cpu
