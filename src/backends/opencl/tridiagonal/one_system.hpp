// SPDX-License-Identifier: BSD-3-Clause
// One long or short system in a device's own memory: which kernels are taken, what follows where they do not hold, and what is enqueued without waiting for that.
#pragma once

#include "families/tridiagonal/ops.hpp"

namespace trifold::opencl {

/// A system that is cut_up(automatic). Nothing waits in a stream, unless x is rhs: who collects an `unstable` outcome enqueues it once more without one. False where the driver failed.
bool enqueue_one(int device, const tridiagonal::System& system, const tridiagonal::Launch& launch, void* outcome, Failure& failure);

/// Without pivots on a GPU, and where that does not hold with them; waits. All that a device has for `two_pass` by name.
bool couple_chunks(int device, const tridiagonal::System& system, const tridiagonal::Launch& launch, void* outcome, Failure& failure);

}  // namespace trifold::opencl
