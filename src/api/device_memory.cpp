// SPDX-License-Identifier: BSD-3-Clause
#include "trifold/device_memory.hpp"

#include <cstring>
#include <new>
#include <string>

#include "backends/registry.hpp"
#include "base/available_memory.hpp"

namespace trifold {
namespace {

constexpr std::align_val_t alignment{256};

std::string place(const Queue& queue) { return std::string("device '") + queue.device() + "'"; }

}  // namespace

void* allocate(const Queue& queue, std::size_t bytes) {
    const Device& device = device_at(queue.device_index());
    if (bytes == 0) return nullptr;
    if (device.runtime) {
        void* memory = nullptr;
        Failure failure;
        if (!device.runtime->allocate(device.number, bytes, &memory, failure)) failure.raise(place(queue));
        return memory;
    }
    require_memory("allocate", static_cast<double>(bytes), "use fewer rows or systems at a time");
    void* const memory = ::operator new(bytes, alignment, std::nothrow);
    if (!memory) throw Error(ErrorCode::bad_input, "allocate", "cannot allocate " + bytes_text(static_cast<double>(bytes)));
    return memory;
}

void release(const Queue& queue, void* memory) noexcept {
    const Device& device = device_at(queue.device_index());
    if (!memory) return;
    if (device.runtime) device.runtime->release(device.number, memory);
    else ::operator delete(memory, alignment);
}

void copy(const Queue& queue, void* to, const void* from, std::size_t bytes) {
    const Device& device = device_at(queue.device_index());
    if (bytes == 0) return;
    if (!device.runtime) {
        std::memmove(to, from, bytes);
        return;
    }
    Failure failure;
    if (!device.runtime->copy(device.number, queue.stream(), to, from, bytes, failure) ||
        !device.runtime->synchronize(device.number, queue.stream(), failure))
        failure.raise(place(queue));
}

RegisteredMemory::RegisteredMemory(const Queue& queue, void* memory, std::size_t bytes) {
    const Device& named = device_at(queue.device_index());
    // One registration serves all devices of a kind.
    const Device* holder = named.runtime && named.runtime->register_host ? &named : nullptr;
    for (const Device* part : named.parts)
        if (!holder && part->runtime && part->runtime->register_host) holder = part;
    if (!holder || bytes == 0) return;
    Failure failure;
    if (!holder->runtime->register_host(holder->number, memory, bytes, failure)) failure.raise(place(queue));
    device_ = find_device(holder->name), memory_ = memory;
}

RegisteredMemory::~RegisteredMemory() {
    if (!memory_) return;
    const Device& device = device_at(device_);
    device.runtime->unregister_host(device.number, memory_);
}

Memory memory_of(const Queue& queue, const void* address) {
    const Device& device = device_at(queue.device_index());
    Memory found;
    Failure failure;
    if (device.runtime && !device.runtime->where(device.number, address, &found, failure)) failure.raise(place(queue));
    return found;
}

}  // namespace trifold
