// SPDX-License-Identifier: BSD-3-Clause
// Joules of a solve by device: what counters gave, and an estimate where there is none.
#pragma once

#include <map>
#include <string>

#include "devices/power_limit.hpp"
#include "report/record.hpp"

namespace trifold::report {

using Watts = std::map<std::string, double>;  ///< by device, while it works

/// "cpu=140,cuda:0=700". Throws Error(usage) for anything else.
Watts watts_from(const std::string& text);

/// Devices that took part in a solve: those of a split, else the one that computed; without joules.
std::vector<DeviceEnergy> energy_without_joules(const trifold::Report& report);

/// Joules, kind and note of all from those of each: "measured" where all are, "unknown" where one is, else "estimated".
void add_up(Energy& energy);

/// "300 W while it computes", and whose limit that is: ", power limit by powercap of package-0"
std::string watts_note(double watts);
std::string watts_note(const devices::PowerLimit& limit);

/// The note of a device of the host where another one has the joules of all.
inline constexpr const char* counted_with_the_host = "counted with the host's other devices";

/// Where a device has no measured joules: watts × the time in which it computed, of the watts that are given, else of its power limit. That of the host's processors counts once, and not
/// beside watts given for a part of what computes there. Where neither is known the note says what to give. Then the sum.
void complete(Energy& energy, const trifold::Report& report, const Watts& watts, const devices::PowerLimits& limits = {});

}  // namespace trifold::report
