// SPDX-License-Identifier: BSD-3-Clause
// What it takes to stream through a device with memory of its own: queues for copies there, kernels and copies back, a block of its memory and
// one of pinned memory of the host. Kept from one solve to the next, since making them takes longer than many solves.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "devices/runtime.hpp"
#include "devices/scratch.hpp"

namespace trifold::devices {

class StreamKit {
public:
    StreamKit(const Runtime& runtime, int device) : runtime_(runtime), device_(device) {}
    ~StreamKit();
    StreamKit(const StreamKit&) = delete;
    StreamKit& operator=(const StreamKit&) = delete;

    const Runtime& runtime() const noexcept { return runtime_; }
    int device() const noexcept { return device_; }

    /// At least so much of both; what there was may be gone, and is where it was too little. Pinned memory is the host's ordinary memory
    /// where the device has no other.
    bool prepare(std::size_t device_bytes, std::size_t host_bytes, Failure& failure);

    char* device_memory() const noexcept { return static_cast<char*>(memory_); }
    char* host_memory() const noexcept { return static_cast<char*>(host_); }

    /// All null where the device has one queue: what is enqueued then runs in that order.
    void *to = nullptr, *run = nullptr, *from = nullptr;

private:
    void release_memory() noexcept;
    void release_host() noexcept;

    const Runtime& runtime_;
    const int device_;
    void *memory_ = nullptr, *host_ = nullptr;
    std::size_t memory_bytes_ = 0, host_bytes_ = 0;
};

/// Kits that are not in use.
class StreamKits {
public:
    std::unique_ptr<StreamKit> take(const Runtime& runtime, int device);
    void give_back(std::unique_ptr<StreamKit> kit);

    /// Scratch of a lane that may be left behind with it.
    std::unique_ptr<ScratchArena> take_scratch();
    void give_back(std::unique_ptr<ScratchArena> scratch);

    /// A device that does not answer: its kits are not given back to it, which could take for ever, nor are those that are in use.
    void leave_behind(const Runtime& runtime, int device);

private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<StreamKit>> kits_;
    std::vector<std::unique_ptr<ScratchArena>> scratch_;
    std::vector<std::pair<const Runtime*, int>> left_behind_;
};

}  // namespace trifold::devices
