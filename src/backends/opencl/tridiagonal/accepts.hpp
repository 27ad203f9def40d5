// SPDX-License-Identifier: BSD-3-Clause
// Which systems and algorithms OpenCL devices take.
#pragma once

#include "families/tridiagonal/ops.hpp"

namespace trifold::opencl {

/// nullptr, or why not, as Ops::refuses.
const char* refuses(const tridiagonal::System& system, tridiagonal::Algorithm algorithm);

/// By kernels of spike.cl, which are taken by name only.
bool is_spike(tridiagonal::Algorithm algorithm);

/// One system that is solved in chunks, coupled on the host where the device does not.
bool cut_up(const tridiagonal::System& system, tridiagonal::Algorithm algorithm);

}  // namespace trifold::opencl
