// SPDX-License-Identifier: BSD-3-Clause
// One short system on a GPU, by one group in one launch (kernels/short.cl).
#pragma once

#include "backends/opencl/tridiagonal/judging.hpp"

namespace trifold::opencl {

/// Whether a group of this device has room for the system.
bool is_short(const FoundDevice& device, const tridiagonal::System& system);

/// Enqueues it; x is stored where it holds, and may be rhs. What does not hold opens what asks for PIVOT_CHUNKS, and is `unstable`. trusted: NEVER, ALWAYS, IN_TURN + k (trusted.hpp).
void enqueue_short(Call& call, cl_int trusted);

}  // namespace trifold::opencl
