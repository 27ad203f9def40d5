// SPDX-License-Identifier: BSD-3-Clause
// Batches, and single systems that are not cut: unpivoted where the pass shows it to be safe, pivoted else.
#pragma once

#include "backends/opencl/tridiagonal/call.hpp"

namespace trifold::opencl {

/// Compute units of the device here that has most: scratch is asked for before one is known.
std::size_t most_units();

/// `wide`: many work items that share local memory, else a vector unit.
std::size_t batch_scratch(bool wide, const tridiagonal::System& system, tridiagonal::Algorithm algorithm);

/// Enqueues. algorithm: automatic or lu.
void enqueue_batch(Call& call, tridiagonal::Algorithm algorithm);

/// Enqueues a look at every value.
void enqueue_finite(Call& call);

}  // namespace trifold::opencl
