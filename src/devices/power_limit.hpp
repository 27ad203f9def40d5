// SPDX-License-Identifier: BSD-3-Clause
// What a device may draw for long, as the machine itself tells it (its thermal design power, or less where less is set): for estimates where nothing counts joules.
#pragma once

#include <map>
#include <string>

#include "devices/powercap.hpp"

namespace trifold::devices {

struct PowerLimit {
    double watts = 0;         ///< 0 = the machine tells none
    std::string source = {};  ///< "power limit by powercap of package-0"
    bool host = false;        ///< of the host's processors: one limit for all devices that compute there
};

using PowerLimits = std::map<std::string, PowerLimit>;  ///< by device

/// The sum of all packages: of each its long-term limit, or what it is built for where that is less. None where a package tells none. Most kernels let everybody read it, the energy
/// counters beside it root only.
PowerLimit host_power_limit(const std::string& root = powercap_root());

}  // namespace trifold::devices
