// SPDX-License-Identifier: BSD-3-Clause
// The power limit behind a device: powercap's for those that compute on the host's processors, NVML's for NVIDIA's boards.
#pragma once

#include "backends/registry.hpp"
#include "devices/power_limit.hpp"

namespace trifold {

/// As it was when this process asked first: solves that choose by joules ask every time. Asks the device's driver; no watts where it tells none.
const devices::PowerLimit& power_limit(const Device& device);

/// Of the device, or of each that it names.
devices::PowerLimits power_limits(const Device& device);

}  // namespace trifold
