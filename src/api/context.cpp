// SPDX-License-Identifier: BSD-3-Clause
// Context and Queue as the user sees them: their state lies in src/devices, the list of devices in src/backends.
#include "trifold/context.hpp"

#include <utility>

#include "backends/registry.hpp"
#include "devices/context_state.hpp"

namespace trifold {

Context::Context(ContextOptions options) : state_(std::make_unique<State>(std::move(options))) {}
Context::~Context() = default;

int Context::threads() const noexcept { return state_->threads; }

std::vector<DeviceInfo> Context::devices() const {
    std::vector<DeviceInfo> out;
    for (const Device* device : registered_devices())
        if (!device->unavailable || !device->unavailable())
            out.push_back({device->name, device->description ? device->description() : std::string(), device->modelled});
    return out;
}

void Context::log(std::string_view line) const { state_->log(line); }

Queue::Queue(Context& context, std::string_view device)
    : context_(&context), device_(nullptr), index_(find_device(device)) {
    device_ = registered_devices()[static_cast<std::size_t>(index_)]->name;
}

}  // namespace trifold
