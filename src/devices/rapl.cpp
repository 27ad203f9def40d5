// SPDX-License-Identifier: BSD-3-Clause
#include "devices/rapl.hpp"

#include <limits>

namespace trifold::devices {

Rapl::Rapl(const std::string& root) {
    bool locked = false;
    for (const PowercapZone& found : powercap_zones(root)) {
        Zone zone{found.name, found.folder + "/energy_uj", powercap_number(found.folder + "/max_energy_range_uj"), 0};
        zone.last = powercap_number(zone.path);
        if (zone.last == zone.last) zones_.push_back(zone);
        else locked = true;
    }
    if (locked) {
        zones_.clear();  // a part of the sum would pass for the whole
        why_not_ = "the processor's energy counters may be read by root only (chmod a+r " + root + "/intel-rapl*/energy_uj)";
    } else if (zones_.empty()) {
        why_not_ = "this machine shows no energy counters of its processors (" + root + "; virtual machines seldom do)";
    }
}

std::string Rapl::zones() const {
    std::string text;
    for (const Zone& zone : zones_) text += (text.empty() ? "" : ", ") + zone.name;
    return text;
}

double Rapl::joules() {
    if (zones_.empty()) return std::numeric_limits<double>::quiet_NaN();
    for (Zone& zone : zones_) {
        const double now = powercap_number(zone.path), step = now - zone.last;
        sum_ += step >= 0 ? step : step + zone.range;
        zone.last = now;
    }
    return sum_ * 1e-6;
}

}  // namespace trifold::devices
