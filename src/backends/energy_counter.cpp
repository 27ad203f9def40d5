// SPDX-License-Identifier: BSD-3-Clause
#include "backends/energy_counter.hpp"

#include <limits>

#include "devices/nvml.hpp"

namespace trifold {

EnergyCounter::EnergyCounter(const Device& device) : name_(device.name) {
    if (!device.runtime) {
        rapl_.emplace();
        source_ = "RAPL: " + rapl_->zones(), why_not_ = rapl_->why_not();
        return;
    }
    Failure failure;
    char bus[32];
    double now = 0;
    source_ = "NVML, the whole board";
    if (!device.runtime->pci_bus || !device.runtime->pci_bus(device.number, bus, sizeof bus, failure)) why_not_ = name_ + " has no energy counter";
    else if (!devices::nvml::joules(bus, &now, failure)) why_not_ = failure.message;
    else bus_ = bus;
}

double EnergyCounter::joules() {
    if (rapl_) return rapl_->joules();
    Failure failure;
    double now = 0;
    return !bus_.empty() && devices::nvml::joules(bus_.c_str(), &now, failure) ? now : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace trifold
