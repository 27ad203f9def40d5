// SPDX-License-Identifier: BSD-3-Clause
#include "backends/opencl/runtime/pinned.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

namespace trifold::opencl {
namespace {

struct Pinned {
    std::size_t bytes;
    OpenDevice* device;
    cl::Buffer buffer;
};

std::mutex& mutex() {
    static std::mutex* const one = new std::mutex;
    return *one;
}

std::map<std::uintptr_t, Pinned>& all() {
    static auto* const one = new std::map<std::uintptr_t, Pinned>;  // never given back: drivers end before us
    return *one;
}

void* map_and_keep(OpenDevice& device, const cl::Buffer& buffer, std::size_t bytes) {
    void* const memory = device.main.queue.enqueueMapBuffer(buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes);
    const std::lock_guard lock(mutex());
    all()[reinterpret_cast<std::uintptr_t>(memory)] = {bytes, &device, buffer};
    return memory;
}

}  // namespace

void* pin_new(OpenDevice& device, std::size_t bytes) {
    return map_and_keep(device, cl::Buffer(device.context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes), bytes);
}

void pin(OpenDevice& device, void* memory, std::size_t bytes) {
    map_and_keep(device, cl::Buffer(device.context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, memory), bytes);
}

void unpin(void* memory) noexcept {
    Pinned one;
    {
        const std::lock_guard lock(mutex());
        const auto found = all().find(reinterpret_cast<std::uintptr_t>(memory));
        if (found == all().end()) return;
        one = std::move(found->second);
        all().erase(found);
    }
    // It stays where it is in the host's memory, whatever the driver says.
    if (clEnqueueUnmapMemObject(one.device->main.queue(), one.buffer(), memory, 0, nullptr, nullptr) == CL_SUCCESS) clFinish(one.device->main.queue());
}

bool is_pinned(const void* memory, std::size_t bytes) {
    const auto at = reinterpret_cast<std::uintptr_t>(memory);
    const std::lock_guard lock(mutex());
    auto next = all().upper_bound(at);
    if (next == all().begin()) return false;
    const auto& [first, one] = *--next;
    return at - first < one.bytes && bytes <= one.bytes - (at - first);
}

}  // namespace trifold::opencl
