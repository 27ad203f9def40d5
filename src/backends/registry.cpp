// SPDX-License-Identifier: BSD-3-Clause
#include "backends/registry.hpp"

#include <string>
#include <vector>

#include "base/nearest.hpp"
#include "trifold/error.hpp"

namespace trifold {

#define TRIFOLD_DEVICE(name) const Device& name##_device();
#include "backends/backends.def"
#undef TRIFOLD_DEVICE

std::span<const Device* const> registered_devices() noexcept {
    static const Device* const devices[] = {
#define TRIFOLD_DEVICE(name) &name##_device(),
#include "backends/backends.def"
#undef TRIFOLD_DEVICE
    };
    return devices;
}

int find_device(std::string_view name) {
    const auto devices = registered_devices();
    for (std::size_t i = 0; i < devices.size(); ++i) {
        if (name == devices[i]->name) {
            const char* why = devices[i]->unavailable ? devices[i]->unavailable() : nullptr;
            if (why) throw Error(ErrorCode::device_unavailable, "device '" + std::string(name) + "'", why);
            return static_cast<int>(i);
        }
    }
    std::vector<std::string_view> names;
    for (const Device* device : devices) names.push_back(device->name);
    throw Error(ErrorCode::usage, "device", "unknown device '" + std::string(name) + "'", nearest_hint(name, names));
}

const Cell& find_cell(const Device& device, std::string_view family) noexcept {
    static const Cell none{"", CellKind::absent, nullptr, "the device has no cell for this family"};
    for (const Cell& cell : device.cells) {
        if (family != cell.family) continue;
        if (cell.kind != CellKind::delegated) return cell;
        for (const Device* other : registered_devices())
            if (std::string_view(other->name) == cell.note)
                for (const Cell& target : other->cells)
                    if (family == target.family && target.kind == CellKind::native) return target;
    }
    return none;
}

}  // namespace trifold
