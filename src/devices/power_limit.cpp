// SPDX-License-Identifier: BSD-3-Clause
#include "devices/power_limit.hpp"

namespace trifold::devices {
namespace {

// Boards that want no limit set the largest that the register holds, 4096 W or nearly.
constexpr double most_of_a_package = 2000;

// 0: it tells none.
double watts_of(const PowercapZone& package) {
    constexpr int most_constraints = 8;
    double watts = 0;
    for (int k = 0; k < most_constraints; ++k) {
        const std::string constraint = package.folder + "/constraint_" + std::to_string(k);
        if (powercap_text(constraint + "_name") != "long_term") continue;
        for (const char* file : {"_power_limit_uw", "_max_power_uw"})
            if (const double found = powercap_number(constraint + file) / 1e6; found > 0 && found <= most_of_a_package && (watts == 0 || found < watts)) watts = found;
    }
    return watts;
}

}  // namespace

PowerLimit host_power_limit(const std::string& root) {
    PowerLimit limit{.host = true};
    std::string names;
    for (const PowercapZone& zone : powercap_zones(root)) {
        if (!zone.name.starts_with("package")) continue;
        const double watts = watts_of(zone);
        if (!(watts > 0)) return {.host = true};  // a part of the sum would pass for the whole
        limit.watts += watts;
        names += (names.empty() ? "" : ", ") + zone.name;
    }
    if (limit.watts > 0) limit.source = "power limit by powercap of " + names;
    return limit;
}

}  // namespace trifold::devices
