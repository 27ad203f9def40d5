// SPDX-License-Identifier: BSD-3-Clause
// What libtrifold_opencl.so gives to libtrifold: one plain table behind one symbol. Both come from one source tree; the
// version and the sizes refuse a mixture of two.
#pragma once

#include <cstddef>

#include "devices/runtime.hpp"
#include "families/tridiagonal/ops.hpp"

namespace trifold::opencl {

struct Table {
    static constexpr const char* library_name = "libtrifold_opencl.so";
    static constexpr const char* table_symbol = "trifold_opencl_table";

    int version = 6;
    std::size_t ops_bytes = sizeof(tridiagonal::Ops), system_bytes = sizeof(tridiagonal::System), runtime_bytes = sizeof(devices::Runtime);

    /// Devices of all platforms; 0 where `absent` says why.
    int (*count)() = nullptr;
    const char* (*absent)() = nullptr;

    /// A part of a device, "opencl:P.D/K/N": its number, which is `count()` or more; -1 and why.
    int (*part)(const char* name, Failure& failure) = nullptr;

    const char* (*name)(int device) = nullptr;
    /// One line: model, kind, units, memory, FP64 or not, platform. And nullptr, or why it cannot be used.
    const char* (*describe)(int device) = nullptr;
    const char* (*unusable)(int device) = nullptr;

    /// nullptr: it works in the host's memory.
    const devices::Runtime* (*runtime)(int device) = nullptr;
    const tridiagonal::Ops* (*tridiagonal)(int device) = nullptr;

    /// Whether kernels of the published mappings are timed one by one from now on; seconds[0] is what marshalling took in the last solve by them, [1] the rest. kernels: which they were.
    bool (*spike_times)(int device, bool wanted, double seconds[2], const char** kernels, Failure& failure) = nullptr;

    bool same_build(const Table& own) const {
        return version == own.version && ops_bytes == own.ops_bytes && system_bytes == own.system_bytes && runtime_bytes == own.runtime_bytes;
    }
};

}  // namespace trifold::opencl
