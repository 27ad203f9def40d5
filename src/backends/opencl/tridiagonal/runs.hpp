// SPDX-License-Identifier: BSD-3-Clause
// One system that does not forget, on a GPU, in two passes without pivots, checked (kernels/runs.cl).
#pragma once

#include "backends/opencl/tridiagonal/call.hpp"

namespace trifold::opencl {

/// What the call needs of scratch, in place with x apart; 0: runs are not for this system.
std::size_t runs_scratch(const tridiagonal::System& system);

/// Whether a device has the local memory for them.
bool runs_fit(const FoundDevice& device, DType dtype);

/// Enqueues. Where x is not the answer, the outcome is `unstable`, and what asks for PIVOT_CHUNKS is opened. x is not rhs. gate: what must have been found before, 0: they run in any case.
/// trusted: nobody waits, and what does not hold is counted (trusted.hpp).
void enqueue_runs(Call& call, cl_uint gate, bool trusted = false);

/// The same, waited for; x may be rhs, which is as it was where this is not the answer. Returns whether it is.
bool solve_in_runs(Call& call);

}  // namespace trifold::opencl
