// SPDX-License-Identifier: BSD-3-Clause
// Memory of a queue's device, for programs without the device's own headers. Those that have them pass their own pointers:
// a view over cudaMalloc'ed memory needs nothing from here. On a host device this is ordinary memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "trifold/context.hpp"
#include "trifold/error.hpp"
#include "trifold/export.hpp"

namespace trifold {

/// Aligned to 256 bytes, contents undefined. Throws Error(bad_input) that says what was asked and what is free.
TRIFOLD_API void* allocate(const Queue& queue, std::size_t bytes);
TRIFOLD_API void release(const Queue& queue, void* memory) noexcept;

/// Copies between host and device in any direction, after all work of the queue; returns when it is done.
TRIFOLD_API void copy(const Queue& queue, void* to, const void* from, std::size_t bytes);

/// Where an address lies, as the queue's device sees it: host, registered, or device with the number of its owner.
TRIFOLD_API Memory memory_of(const Queue& queue, const void* address);

/// Ordinary memory of the host, registered (pinned) while this lives: a split or streamed solve then moves it over the link where it lies. Takes about as
/// long as a few solves; worth it for arrays that are used again. On devices without a link, and those that cannot, nothing happens.
class TRIFOLD_API RegisteredMemory {
public:
    RegisteredMemory() = default;
    RegisteredMemory(const Queue& queue, void* memory, std::size_t bytes);
    RegisteredMemory(RegisteredMemory&& other) noexcept { swap(other); }
    RegisteredMemory& operator=(RegisteredMemory&& other) noexcept { return swap(other), *this; }
    ~RegisteredMemory();

private:
    void swap(RegisteredMemory& other) noexcept { std::swap(device_, other.device_), std::swap(memory_, other.memory_); }
    int device_ = -1;
    void* memory_ = nullptr;
};

/// An array in the memory of a queue's device; the queue must outlive it.
template <class T>
class DeviceArray {
public:
    DeviceArray() = default;
    DeviceArray(const Queue& queue, std::int64_t size)
        : queue_(&queue), data_(static_cast<T*>(allocate(queue, bytes_of(size)))), size_(size) {}
    DeviceArray(const Queue& queue, std::span<const T> values) : DeviceArray(queue, static_cast<std::int64_t>(values.size())) { upload(values); }
    DeviceArray(DeviceArray&& other) noexcept { swap(other); }
    DeviceArray& operator=(DeviceArray&& other) noexcept { return swap(other), *this; }
    ~DeviceArray() {
        if (data_) release(*queue_, data_);
    }

    T* data() const noexcept { return data_; }
    std::int64_t size() const noexcept { return size_; }
    Memory memory() const noexcept { return queue_ ? queue_->memory() : Memory{}; }

    void upload(std::span<const T> values) {
        check(values.size());
        if (size_) copy(*queue_, data_, values.data(), values.size_bytes());
    }
    void download(std::span<T> values) const {
        check(values.size());
        if (size_) copy(*queue_, values.data(), data_, values.size_bytes());
    }

private:
    void swap(DeviceArray& other) noexcept { std::swap(queue_, other.queue_), std::swap(data_, other.data_), std::swap(size_, other.size_); }
    static std::size_t bytes_of(std::int64_t size) {
        if (size < 0 || size > INT64_MAX / static_cast<std::int64_t>(sizeof(T)))
            throw Error(ErrorCode::usage, "DeviceArray", std::to_string(size) + " values", "give a number from 0 to what memory holds");
        return static_cast<std::size_t>(size) * sizeof(T);
    }
    void check(std::size_t count) const {
        if (static_cast<std::int64_t>(count) != size_)
            throw Error(ErrorCode::usage, "DeviceArray", std::to_string(count) + " values where it has " + std::to_string(size_));
    }

    const Queue* queue_ = nullptr;
    T* data_ = nullptr;
    std::int64_t size_ = 0;
};

}  // namespace trifold
