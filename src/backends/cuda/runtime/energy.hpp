// SPDX-License-Identifier: BSD-3-Clause
// Energy that a GPU has used, from NVML, which is loaded when it is first asked for.
#pragma once

#include "base/failure.hpp"

namespace trifold::cuda {

/// Joules of the whole board since its driver was loaded. The counter moves every 20 to 100 ms.
bool joules(int device, double* joules, Failure& failure);

}  // namespace trifold::cuda
