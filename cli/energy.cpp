// SPDX-License-Identifier: BSD-3-Clause
#include "energy.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace trifold::cli {
namespace {

constexpr double least_seconds = 2;

double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

EnergyMeter::EnergyMeter(const Queue& queue) {
    const Device& device = device_at(queue.device_index());
    if (device.parts.empty()) counters_.emplace_back(device);
    for (const Device* part : device.parts) counters_.emplace_back(*part);
}

report::Energy EnergyMeter::measure(const std::function<bool()>& solve) {
    report::Energy energy;
    // Where nobody counts, nothing is to be learnt in two seconds.
    const bool readable = std::any_of(counters_.begin(), counters_.end(), [](const EnergyCounter& counter) { return counter.why_not().empty(); });
    std::vector<double> before;
    for (EnergyCounter& counter : counters_) before.push_back(counter.why_not().empty() ? counter.joules() : report::unknown);
    const double start = seconds();
    while (readable && energy.seconds < least_seconds) {
        if (!solve()) return {};
        ++energy.solves;
        energy.seconds = seconds() - start;
    }
    bool host = false;
    for (std::size_t k = 0; k < counters_.size(); ++k) {
        EnergyCounter& counter = counters_[k];
        const double joules = (counter.joules() - before[k]) / energy.solves;
        report::DeviceEnergy one{counter.device(), joules, "measured", counter.source()};
        if (!counter.why_not().empty() || std::isnan(joules)) one = {counter.device(), report::unknown, "unknown", counter.why_not()};
        // One counter for all that computes on the host's processors: it counts once.
        else if (counter.host() && host) one.joules = 0, one.note = report::counted_with_the_host;
        host = host || counter.host();
        energy.devices.push_back(std::move(one));
    }
    report::add_up(energy);
    return energy;
}

}  // namespace trifold::cli
