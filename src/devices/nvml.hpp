// SPDX-License-Identifier: BSD-3-Clause
// Energy and power of NVIDIA's boards, from NVML, which is loaded when it is first asked for. `bus`: where a board sits, "0000:3b:00.0". False with a failure where it is not told.
#pragma once

#include "base/failure.hpp"

namespace trifold::devices::nvml {

/// Joules of the whole board since its driver was loaded. The counter moves every 20 to 100 ms.
bool joules(const char* bus, double* joules, Failure& failure);

/// Watts that the whole board may draw by default, whatever limit is set now.
bool default_power_limit(const char* bus, double* watts, Failure& failure);

}  // namespace trifold::devices::nvml
