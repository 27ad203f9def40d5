// SPDX-License-Identifier: BSD-3-Clause
// Addresses for buffers. OpenCL's buffers have none, and Trifold's views are addresses.
//
// A device with memory of its own: each buffer has a range of addresses reserved in this process, which nothing can read or write; an
// address in there stands for a place in the buffer. A device that works in the host's memory: buffers are made over the
// arrays where they lie, one for each run of memory that they touch, and given back after the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/opencl/runtime/device.hpp"
#include "trifold/memory.hpp"

namespace trifold::opencl {

/// Throws cl::Error. Aligned to 4096.
void* reserve(int device, std::size_t bytes);
void give_back(void* address);

/// Bytes of this device that are reserved.
std::size_t reserved(int device);

/// For messages: "1.5 GiB", "320 MiB", "17 bytes".
void size_text(char (&out)[32], std::size_t bytes);

struct Place {
    cl::Buffer buffer;
    std::size_t offset = 0;  ///< bytes
    int device = -1;         ///< none: it is no address of ours
};
Place place_of(const void* address);

/// Its device alone; -1 as above.
int device_of(const void* address);

/// The memory that one call touches.
class Touched {
public:
    explicit Touched(OpenDevice& device) : device_(device) {}
    ~Touched();
    Touched(const Touched&) = delete;
    Touched& operator=(const Touched&) = delete;

    /// Bytes first … last, last included. written: by kernels.
    void add(const void* first, const void* last, bool written = true);

    /// All are added: makes the buffers. Throws cl::Error, and Stop where the driver takes no buffer that large.
    void make();

    /// The buffer of an address in there, and the offset in it in bytes.
    Place at(const void* address) const;

    /// Waits; what kernels wrote can be read by the host then.
    void to_host();

private:
    struct Run {
        std::uintptr_t first, last;
        bool written;
        cl::Buffer buffer;
    };
    OpenDevice& device_;
    std::vector<Run> runs_;
};

}  // namespace trifold::opencl
