// SPDX-License-Identifier: BSD-3-Clause
// Batches whose systems fit on a GPU's chip: which kernel, in which shape.
#pragma once

#include "backends/opencl/tridiagonal/call.hpp"

namespace trifold::opencl {

/// Whether there is a kernel for systems of so many rows.
bool fits_on_chip(const FoundDevice& device, const tridiagonal::System& system);

/// Whether 32 lanes with so many rows each have their operands in a group's local memory.
bool lanes_fit(const FoundDevice& device, DType dtype, std::int64_t rows);

/// Whether that kernel can be a call's only one.
bool may_be_alone(const FoundDevice& device, const tridiagonal::System& system);

/// Whether it has two groups for a column, either of which may mark it.
bool marks_twice(const FoundDevice& device, const tridiagonal::System& system);

/// Enqueues it: without pivoting, checked. What fails the check is marked; `trusted`: nothing follows, the outcome is told as if all held, and what fails is counted in the queue's state.
void enqueue_on_chip(Call& call, bool trusted);

}  // namespace trifold::opencl
