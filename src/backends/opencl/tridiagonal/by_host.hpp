// SPDX-License-Identifier: BSD-3-Clause
// Systems in a device's own memory of which the host decides something in between: it waits, and tells the outcome where the device's kernels would have. False where the driver failed.
#pragma once

#include "families/tridiagonal/ops.hpp"

namespace trifold::opencl {

/// The family's driver for chunks: interface rows, ends and residuals (1 % of the system) go through the host. x may be rhs.
bool couple_on_host(int device, const tridiagonal::System& system, const tridiagonal::Launch& launch, void* outcome, Failure& failure);

/// By name: the published mappings.
bool by_spike(int device, const tridiagonal::System& system, tridiagonal::Algorithm algorithm, const tridiagonal::Launch& launch, void* outcome, Failure& failure);

}  // namespace trifold::opencl
