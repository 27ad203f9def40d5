// SPDX-License-Identifier: BSD-3-Clause
// Context: the threads, devices, measured profiles, scratch and log of a user. There is no global state.
// Queue: one device of a Context.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trifold/export.hpp"
#include "trifold/memory.hpp"

namespace trifold {

struct DeviceInfo {
    std::string name;         ///< "cpu", "reference", …
    std::string description;  ///< model, cores, vector width
    bool modelled = false;    ///< its times come from a model, not from a clock
};

struct ContextOptions {
    int threads = 0;                  ///< 0 = OMP_NUM_THREADS, else the cores this process may use
    std::string profile_path;         ///< empty = $XDG_CACHE_HOME/trifold (or ~/.cache/trifold); "none" = do not read or write one
    std::function<void(std::string_view)> log;  ///< receives one line per event worth knowing; empty = silence
};

class TRIFOLD_API Context {
public:
    explicit Context(ContextOptions options = {});
    ~Context();
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    int threads() const noexcept;
    std::vector<DeviceInfo> devices() const;
    void log(std::string_view line) const;

    struct State;
    State& state() const noexcept { return *state_; }

private:
    std::unique_ptr<State> state_;
};

/// Work goes to one device, in the order it was enqueued. Cheap to make; refers to its Context, and to the stream it is given.
class TRIFOLD_API Queue {
public:
    /// Throws Error(usage) with the nearest name where the device is not known, Error(device_unavailable) where it cannot be used.
    /// `stream`: CUDA: the user's cudaStream_t, made on that device; null = its default stream. The host's devices take none.
    explicit Queue(Context& context, std::string_view device = "cpu", void* stream = nullptr);

    Context& context() const noexcept { return *context_; }
    const char* device() const noexcept { return device_; }
    int device_index() const noexcept { return index_; }
    void* stream() const noexcept { return stream_; }

    /// Where the device computes: host, or the memory of the device with this number.
    Memory memory() const noexcept { return memory_; }

    /// Waits for all that was enqueued. Throws Error(device_unavailable) where some of it has failed.
    void synchronize() const;

private:
    Context* context_;
    const char* device_;
    int index_;
    void* stream_;
    Memory memory_;
};

}  // namespace trifold
