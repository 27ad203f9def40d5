// SPDX-License-Identifier: BSD-3-Clause
// Batches, and single systems that are not cut: unpivoted where the pass shows it to be safe, pivoted else.
#pragma once

#include "backends/opencl/tridiagonal/call.hpp"

namespace trifold::opencl {

/// Work items that draw blocks by tickets, on a vector unit with this many compute units. PoCL hands out several groups at a time: with
/// one per unit a single thread takes them all.
constexpr std::size_t drawers(int units) { return 2 * static_cast<std::size_t>(units); }

/// The same for the device here that has most units: scratch is asked for before one is known.
std::size_t most_drawers();

/// Whether x is better stored past the caches: the system and its solution are more than the cores' own. The last level would have to read x first: 256 x 4096 in FP32, 20 MiB of its 32,
/// takes 0.7 of the time so (Zen 4).
inline bool past_caches(const tridiagonal::System& system) {
    return static_cast<std::size_t>(system.rows * system.systems()) * 5 * size_of(system.dtype) > (std::size_t{4} << 20);
}

/// `wide`: many work items that share local memory, else a vector unit.
std::size_t batch_scratch(bool wide, const tridiagonal::System& system, tridiagonal::Algorithm algorithm);

/// Enqueues. algorithm: automatic or lu.
void enqueue_batch(Call& call, tridiagonal::Algorithm algorithm);

/// One launch, for what may_be_alone; what needs pivots is counted in the queue's state and left as it was.
void enqueue_batch_on_trust(Call& call);

/// Waits. In the host's memory a launch that mostly has nothing to do, for systems that need pivots, is made only where there are some: it costs as much as some hundred systems.
void solve_batch(Call& call, tridiagonal::Algorithm algorithm);

/// Enqueues a look at every value.
void enqueue_finite(Call& call);

}  // namespace trifold::opencl
