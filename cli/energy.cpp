// SPDX-License-Identifier: BSD-3-Clause
#include "energy.hpp"

#include <chrono>
#include <cmath>

#include "backends/registry.hpp"

namespace trifold::cli {
namespace {

constexpr double least_seconds = 2;

double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

EnergyMeter::EnergyMeter(const Queue& queue) : queue_(queue) {
    const Device& device = device_at(queue.device_index());
    if (!device.runtime) {
        source_ = "RAPL: " + rapl_.zones();
        why_not_ = rapl_.why_not();
    } else if (!device.runtime->joules) {
        why_not_ = std::string(device.name) + " has no energy counter";
    } else {
        source_ = "NVML, the whole board";
        Failure failure;
        double now = 0;
        if (!device.runtime->joules(device.number, &now, failure)) why_not_ = failure.message;
    }
}

double EnergyMeter::joules() {
    const Device& device = device_at(queue_.device_index());
    if (!device.runtime) return rapl_.joules();
    Failure failure;
    double now = 0;
    return device.runtime->joules(device.number, &now, failure) ? now : report::unknown;
}

report::Energy EnergyMeter::measure(const std::function<bool()>& solve) {
    report::Energy energy;
    energy.note = why_not_;
    if (!why_not_.empty()) return energy;
    const double before = joules(), start = seconds();
    do {
        if (!solve()) return {};
        ++energy.solves;
        energy.seconds = seconds() - start;
    } while (energy.seconds < least_seconds);
    energy.joules = (joules() - before) / energy.solves;
    if (std::isnan(energy.joules)) return {};
    energy.kind = "measured";
    energy.note = source_;
    return energy;
}

}  // namespace trifold::cli
