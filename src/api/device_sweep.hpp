// SPDX-License-Identifier: BSD-3-Clause
// Sweeps on a device with memory of its own.
#pragma once

#include "backends/registry.hpp"
#include "families/tridiagonal/ops.hpp"
#include "problems/mesh/checked.hpp"
#include "trifold/context.hpp"

namespace trifold {

/// Waits. Fields of the host are copied to the device, and those that are targets back; those of the device are used where they are.
/// Throws Error.
SweepOutcome sweep_on_device(Queue& queue, const Device& device, const tridiagonal::Ops& ops, const mesh::Checked& checked, std::int64_t first_step,
                             std::int64_t steps);

}  // namespace trifold
