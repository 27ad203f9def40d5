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
        if (!why_unavailable(*device))
            out.push_back({device->name, device->description ? device->description(*device) : std::string(), device->modelled});
    return out;
}

void Context::log(std::string_view line) const { state_->log(line); }

Queue::Queue(Context& context, std::string_view device, void* stream)
    : context_(&context), device_(nullptr), index_(find_device(device)), stream_(stream) {
    const Device& found = device_at(index_);
    device_ = found.name;
    if (found.runtime) memory_ = {MemoryKind::device, found.number};
    else if (stream)
        throw Error(ErrorCode::usage, "Queue", std::string("a stream for device '") + device_ + "', which has none", "leave it out");
}

void Queue::synchronize() const {
    const Device& device = device_at(index_);
    Failure failure;
    if (device.runtime && !device.runtime->synchronize(device.number, stream_, failure)) failure.raise(std::string("device '") + device_ + "'");
}

}  // namespace trifold
