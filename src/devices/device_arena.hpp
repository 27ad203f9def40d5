// SPDX-License-Identifier: BSD-3-Clause
// Memory of a device that a Context keeps from one blocking solve to the next. Solves that run at the same time get blocks of
// their own.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "devices/runtime.hpp"

namespace trifold::devices {

class DeviceArena;

/// A block on loan; given back when it goes out of scope, and not before the work on it is done.
class DeviceBlock {
public:
    DeviceBlock() = default;
    DeviceBlock(DeviceBlock&& other) noexcept { swap(other); }
    DeviceBlock& operator=(DeviceBlock&& other) noexcept { return swap(other), *this; }
    ~DeviceBlock();

    void* data() const noexcept { return data_; }
    std::size_t bytes() const noexcept { return bytes_; }

private:
    friend class DeviceArena;
    void swap(DeviceBlock& other) noexcept { std::swap(arena_, other.arena_), std::swap(data_, other.data_), std::swap(bytes_, other.bytes_); }
    DeviceArena* arena_ = nullptr;
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
};

class DeviceArena {
public:
    DeviceArena(const Runtime& runtime, int device, std::string name) : runtime_(runtime), device_(device), name_(std::move(name)) {}
    ~DeviceArena();
    DeviceArena(const DeviceArena&) = delete;
    DeviceArena& operator=(const DeviceArena&) = delete;

    /// At least `bytes`, aligned to 256. Allocates only where no kept block is large enough; throws Error(bad_input) with what
    /// was asked, what is free, and how many of `systems` systems would fit, or of one system's `rows` rows. `what` needs them: it begins the message.
    DeviceBlock take(std::size_t bytes, const std::string& what, double rows, double systems = 1);

private:
    friend class DeviceBlock;
    struct Slot {
        void* data;
        std::size_t bytes;
        bool lent;
    };
    void give_back(void* data) noexcept;

    const Runtime& runtime_;
    const int device_;
    const std::string name_;
    std::mutex mutex_;
    std::vector<Slot> slots_;
};

}  // namespace trifold::devices
