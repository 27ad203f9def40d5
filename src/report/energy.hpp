// SPDX-License-Identifier: BSD-3-Clause
// Joules of a solve by device: what counters gave, and an estimate where there is none.
#pragma once

#include <map>
#include <string>

#include "report/record.hpp"

namespace trifold::report {

using Watts = std::map<std::string, double>;  ///< by device, while it works

/// "cpu=140,cuda:0=700". Throws Error(usage) for anything else.
Watts watts_from(const std::string& text);

/// Devices that took part in a solve: those of a split, else the one that computed; without joules.
std::vector<DeviceEnergy> energy_without_joules(const trifold::Report& report);

/// Joules, kind and note of all from those of each: "measured" where all are, "unknown" where one is, else "estimated".
void add_up(Energy& energy);

/// "300 W while it computes"
std::string watts_note(double watts);

/// Where a device has no measured joules, and its watts are known: watts × the time in which it computed. Then the sum.
void complete(Energy& energy, const trifold::Report& report, const Watts& watts);

}  // namespace trifold::report
