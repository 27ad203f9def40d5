// SPDX-License-Identifier: BSD-3-Clause
// All devices of all platforms, and parts of them.
#pragma once

#include <cstddef>
#include <string>

#include "backends/opencl/runtime/cl.hpp"
#include "backends/opencl/runtime/kinds.hpp"

namespace trifold::opencl {

struct FoundDevice {
    std::string name, text, unusable;
    cl::Device device;
    Kind kind = Kind::cpu;
    bool in_host_memory = false;  ///< it shares the host's memory, and works there
    bool wide = false;            ///< many work items that share local memory: a GPU's kernels; else a vector unit's
    bool fp64 = false;
    int vector_bytes = 64;        ///< of a vector unit's registers: 32 where that is known, else 64
    int ptx = 0;                  ///< NVIDIA's compiler, whose assembler kernels may contain: major number of the compute capability
    bool groups_meet = false;     ///< what a group has stored before an atomic is there for another one that has seen that: known of NVIDIA's devices from compute capability 7 on, and of processors
    int units = 1;
    bool part = false;            ///< of another device
    std::size_t memory = 0, largest_block = 0, local_memory = 0, group = 1;  ///< bytes; most work items of a group
    std::string bus;              ///< an NVIDIA GPU's place on PCI, as NVML has it: "0000:3b:00.0"; empty where the driver does not tell
    std::string driver;           ///< platform, device and driver version: what a compiled program is for

    bool is_pocl() const { return driver.starts_with("Portable Computing Language"); }
};

int device_count();
const char* absent();
const FoundDevice& found(int device);

/// "opencl:P.D/K/N", part K of N: made where it is not there yet. Its number, or -1.
int part_of_device(const char* name, Failure& failure);

}  // namespace trifold::opencl
