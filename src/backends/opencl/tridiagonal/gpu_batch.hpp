// SPDX-License-Identifier: BSD-3-Clause
// Batches whose systems fit on a GPU's chip: which kernel, in which shape.
#pragma once

#include "backends/opencl/tridiagonal/call.hpp"

namespace trifold::opencl {

/// Whether there is a kernel for systems of so many rows.
bool fits_on_chip(const FoundDevice& device, const tridiagonal::System& system);

/// Whether 32 lanes with so many rows each have their operands in a group's local memory.
bool lanes_fit(const FoundDevice& device, DType dtype, std::int64_t rows);

/// Enqueues it: without pivoting, checked; what fails the check is marked.
void enqueue_on_chip(Call& call);

}  // namespace trifold::opencl
