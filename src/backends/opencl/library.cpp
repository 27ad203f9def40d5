// SPDX-License-Identifier: BSD-3-Clause
// The only symbol that libtrifold_opencl.so shows.
#include "backends/opencl/runtime/device.hpp"
#include "backends/opencl/runtime/discovery.hpp"
#include "backends/opencl/runtime/runtime.hpp"
#include "backends/opencl/table.hpp"
#include "backends/opencl/tridiagonal/cell.hpp"

extern "C" __attribute__((visibility("default"))) const trifold::opencl::Table* trifold_opencl_table() {
    using namespace trifold::opencl;
    static const Table table = [] {
        Table t;
        t.count = device_count;
        t.absent = absent;
        t.part = part_of_device;
        t.name = [](int device) { return found(device).name.c_str(); };
        t.describe = [](int device) { return found(device).text.c_str(); };
        t.unusable = [](int device) { return found(device).unusable.empty() ? nullptr : found(device).unusable.c_str(); };
        t.runtime = [](int device) { return found(device).in_host_memory ? nullptr : &runtime(); };
        t.tridiagonal = tridiagonal_ops;
        t.spike_times = [](int device, bool wanted, double seconds[2], const char** kernels, trifold::Failure& failure) {
            return guarded("taking times", failure, [&] {
                OpenDevice& open = open_device(device);
                const std::lock_guard lock(open.mutex);
                seconds[0] = open.spike_times.marshalling, seconds[1] = open.spike_times.solving, *kernels = open.spike_times.kernels;
                open.spike_times.wanted = wanted;
            });
        };
        return t;
    }();
    return &table;
}
