// SPDX-License-Identifier: BSD-3-Clause
#include "backends/power_limit.hpp"

#include <mutex>

#include "devices/nvml.hpp"

namespace trifold {
namespace {

devices::PowerLimit ask(const Device& device) {
    if (!device.runtime) return devices::host_power_limit();
    Failure ignored;
    char bus[32];
    double watts = 0;
    if (!device.runtime->pci_bus || !device.runtime->pci_bus(device.number, bus, sizeof bus, ignored)) return {};
    if (!devices::nvml::default_power_limit(bus, &watts, ignored) || !(watts > 0)) return {};
    return {watts, "default power limit by NVML", false};
}

}  // namespace

const devices::PowerLimit& power_limit(const Device& device) {
    static std::mutex mutex;
    static devices::PowerLimits asked;
    const std::lock_guard lock(mutex);
    const auto found = asked.find(device.name);
    return found != asked.end() ? found->second : asked.emplace(device.name, ask(device)).first->second;
}

devices::PowerLimits power_limits(const Device& device) {
    devices::PowerLimits limits;
    if (device.parts.empty()) limits.emplace(device.name, power_limit(device));
    for (const Device* part : device.parts) limits.emplace(part->name, power_limit(*part));
    return limits;
}

}  // namespace trifold
