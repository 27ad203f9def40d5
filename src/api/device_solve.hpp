// SPDX-License-Identifier: BSD-3-Clause
// A solve on a device with memory of its own.
#pragma once

#include <functional>

#include "api/placement.hpp"
#include "backends/registry.hpp"
#include "families/tridiagonal/ops.hpp"
#include "problems/tridiagonal/system.hpp"

namespace trifold::tridiagonal {

struct DeviceTimes {
    double to_device = 0, solve = 0, from_device = 0;  ///< seconds; the first and the last 0 where nothing was copied
    std::size_t workspace_bytes = 0;                   ///< on the device, copies of the host's arrays included
    bool stores = false;                               ///< x has begun to come back to the host: in place its right-hand side is no longer what it was
};

/// Waits. Arrays of the host are copied to the device and x back; those of the device are used where they are. `timed` asks for
/// `times`. Throws Error; `times.stores` is true by then if x may have changed.
Outcome solve_on_device(Queue& queue, const Device& device, const Ops& ops, const System& system, bool transposed, Algorithm algorithm,
                        const Placement& placement, const Options& options, bool timed, DeviceTimes& times);

/// Enqueues only; `outcome` is ops.outcome_bytes of the device's memory.
void enqueue_on_device(Queue& queue, const Device& device, const Ops& ops, const System& system, Algorithm algorithm, const Options& options,
                       void* outcome);

}  // namespace trifold::tridiagonal
