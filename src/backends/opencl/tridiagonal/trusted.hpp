// SPDX-License-Identifier: BSD-3-Clause
// One system after the other, without waiting for what is found of each: looked at before anybody else may see what they solved, and solved again in order, by the way that
// waits, where one did not hold. Nothing that a solve reads may then have been written by a later one, or by itself; else what went before is looked at first.
// Or in turn: kernels that store nothing where x does not hold, nor behind one of which it did not. They may write what they read, and what others read: the first that did not hold is solved again and what follows it.
#pragma once

#include "backends/opencl/runtime/device.hpp"
#include "families/tridiagonal/ops.hpp"

namespace trifold::opencl {

/// Enqueues one solve; false where the driver failed. `waits` solves it, falls back, and tells the outcome.
using Solves = bool (*)(int device, const tridiagonal::System& system, const tridiagonal::Launch& launch, void* outcome, Failure& failure);

bool enqueue_trusted(int device, const tridiagonal::System& system, const tridiagonal::Launch& launch, void* outcome, Failure& failure, Solves trusts, Solves waits);

/// `trusts` enqueues one launch, trusted IN_TURN + place_in_turn.
bool enqueue_in_turn(int device, const tridiagonal::System& system, const tridiagonal::Launch& launch, void* outcome, Failure& failure, Solves trusts, Solves waits);
cl_int place_in_turn(int device);

}  // namespace trifold::opencl
