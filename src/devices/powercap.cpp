// SPDX-License-Identifier: BSD-3-Clause
#include "devices/powercap.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

namespace trifold::devices {

std::string powercap_root() {
    const char* const own = std::getenv("TRIFOLD_POWERCAP");
    return own && *own ? own : "/sys/class/powercap";
}

std::vector<PowercapZone> powercap_zones(const std::string& root) {
    namespace fs = std::filesystem;
    std::vector<PowercapZone> zones;
    std::error_code error;
    for (fs::directory_iterator at(root, error), end; !error && at != end; at.increment(error)) {
        // "intel-rapl:0" is a package or the whole platform, "intel-rapl:0:1" a part of it.
        if (!at->path().filename().string().starts_with("intel-rapl:")) continue;
        PowercapZone zone{powercap_text(at->path().string() + "/name"), at->path().string()};
        if (zone.name.starts_with("package") || zone.name == "dram") zones.push_back(std::move(zone));
    }
    std::sort(zones.begin(), zones.end(), [](const PowercapZone& a, const PowercapZone& b) { return a.folder < b.folder; });
    return zones;
}

std::string powercap_text(const std::string& file) {
    std::ifstream stream(file);
    std::string line;
    std::getline(stream, line);
    return line;
}

double powercap_number(const std::string& file) {
    std::ifstream stream(file);
    double value = 0;
    return stream >> value ? value : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace trifold::devices
