// SPDX-License-Identifier: BSD-3-Clause
#include "devices/rapl.hpp"

#include <filesystem>
#include <fstream>
#include <limits>

namespace trifold::devices {
namespace {

constexpr double unreadable = std::numeric_limits<double>::quiet_NaN();

std::string first_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

double number(const std::string& path) {
    std::ifstream file(path);
    double value = 0;
    return file >> value ? value : unreadable;
}

}  // namespace

Rapl::Rapl(const std::string& root) {
    namespace fs = std::filesystem;
    std::error_code error;
    bool locked = false;
    for (fs::directory_iterator at(root, error), end; !error && at != end; at.increment(error)) {
        const std::string file = at->path().filename().string();
        // "intel-rapl:0" is a package or the whole platform, "intel-rapl:0:1" a part of it.
        if (!file.starts_with("intel-rapl:")) continue;
        const std::string name = first_line(at->path().string() + "/name");
        if (!name.starts_with("package") && name != "dram") continue;
        Zone zone{name, at->path().string() + "/energy_uj", number(at->path().string() + "/max_energy_range_uj"), 0};
        zone.last = number(zone.path);
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
    if (zones_.empty()) return unreadable;
    for (Zone& zone : zones_) {
        const double now = number(zone.path), step = now - zone.last;
        sum_ += step >= 0 ? step : step + zone.range;
        zone.last = now;
    }
    return sum_ * 1e-6;
}

}  // namespace trifold::devices
