// SPDX-License-Identifier: BSD-3-Clause
// What tests of OpenCL devices look for first: a device, and functions of a layer of OpenCL's loader.
#pragma once

#include <dlfcn.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

#include "backends/registry.hpp"
#include "families/tridiagonal/split/watch.hpp"

namespace trifold::tests {

inline constexpr const char* no_device = "no OpenCL device on this machine";
inline constexpr const char* no_layer = "OpenCL's loader has not loaded the layer (OPENCL_LAYERS; ocl-icd from 2.3 on)";

/// The first OpenCL device that can be used; null: there is none.
inline const Device* opencl_device() {
    for (const Device* device : registered_devices())
        if (std::string_view(device->name).starts_with("opencl:") && !why_unavailable(*device)) return device;
    return nullptr;
}

inline std::string opencl_device_name() {
    const Device* const device = opencl_device();
    return device ? device->name : "";
}

/// A function of the layer that the loader has loaded, by its type; null where it has not.
template <class Function>
Function* layer_function(const char* name) {
    const char* const path = std::getenv("OPENCL_LAYERS");
    void* const handle = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : nullptr;
    return handle ? reinterpret_cast<Function*>(dlsym(handle, name)) : nullptr;
}

/// Until every call that was left behind has returned: from then on its thread does nothing.
inline void wait_for_calls_left_behind() {
    while (tridiagonal::split::calls_left_behind() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

}  // namespace trifold::tests
