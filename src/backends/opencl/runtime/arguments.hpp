// SPDX-License-Identifier: BSD-3-Clause
// A kernel that remembers what its arguments are: a driver takes its time for each that it is told, and of solves in a row most are as they were.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "backends/opencl/runtime/cl.hpp"

namespace trifold::opencl {

/// Counts buffers that were given back, before they are: a driver may have the handle of one for another one then, which is not the same argument.
inline std::atomic<unsigned> buffers_given_back{0};

class KernelArguments {
public:
    explicit KernelArguments(cl::Kernel kernel) : kernel_(std::move(kernel)) {}
    KernelArguments() = default;

    /// For who sets all arguments: nothing is known of them from here on.
    cl::Kernel& forget() {
        for (std::vector<std::byte>& one : known_) one.clear();
        return kernel_;
    }
    const cl::Kernel& kernel() const { return kernel_; }

    /// Before arguments are set for a launch.
    void begin() {
        if (const unsigned now = buffers_given_back.load(); now != as_of_) forget(), as_of_ = now;
    }

    template <class T>
    void set(cl_uint at, const T& value) {
        if constexpr (std::is_base_of_v<cl::Memory, T>) {
            const cl_mem handle = value();
            set_bytes(at, sizeof handle, &handle);
        } else {
            static_assert(std::is_trivially_copyable_v<T>);
            set_bytes(at, sizeof value, &value);
        }
    }

private:
    void set_bytes(cl_uint at, std::size_t bytes, const void* value) {
        if (known_.size() <= at) known_.resize(at + 1);
        std::vector<std::byte>& known = known_[at];
        if (known.size() == bytes && std::memcmp(known.data(), value, bytes) == 0) return;
        known.clear();  // where the driver refuses it
        kernel_.setArg(at, bytes, value);
        const auto* const first = static_cast<const std::byte*>(value);
        known.assign(first, first + bytes);
    }

    cl::Kernel kernel_;
    std::vector<std::vector<std::byte>> known_;
    unsigned as_of_ = 0;
};

}  // namespace trifold::opencl
