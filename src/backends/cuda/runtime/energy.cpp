// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/runtime/energy.hpp"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <string>

namespace trifold::cuda {
namespace {

// nvml.h does not come with every CUDA: these are all of its names that are used. Results are 0 where all went well.
struct Nvml {
    using Device = void*;
    int (*init)() = nullptr;
    int (*handle)(const char* bus, Device* device) = nullptr;
    int (*energy)(Device device, unsigned long long* millijoules) = nullptr;
    const char* (*text)(int result) = nullptr;
    std::string why_not;

    Nvml() {
        void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            why_not = "libnvidia-ml.so.1 cannot be loaded";
            return;
        }
        const auto find = [&](auto& function, const char* name) {
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
            if (!function) why_not = std::string("libnvidia-ml.so.1 has no ") + name;
        };
        find(init, "nvmlInit_v2");
        find(handle, "nvmlDeviceGetHandleByPciBusId_v2");
        find(energy, "nvmlDeviceGetTotalEnergyConsumption");
        find(text, "nvmlErrorString");
        if (!why_not.empty()) return;
        if (const int result = init()) why_not = std::string("NVML does not start: ") + text(result);
    }
};

}  // namespace

bool joules(int device, double* joules, Failure& failure) {
    static const Nvml nvml;
    constexpr const char* hint = "does nvidia-smi show the GPU's power?";
    if (!nvml.why_not.empty()) return failure.say(ErrorCode::device_unavailable, nvml.why_not.c_str(), hint);
    char bus[32];
    if (cudaDeviceGetPCIBusId(bus, sizeof bus, device) != cudaSuccess) {
        cudaGetLastError();
        return failure.say(ErrorCode::device_unavailable, "the GPU does not tell its place on the bus", hint);
    }
    Nvml::Device handle = nullptr;
    unsigned long long millijoules = 0;
    int result = nvml.handle(bus, &handle);
    if (result == 0) result = nvml.energy(handle, &millijoules);
    if (result != 0) return failure.say(ErrorCode::device_unavailable, nvml.text(result), hint);
    *joules = 1e-3 * static_cast<double>(millijoules);
    return true;
}

}  // namespace trifold::cuda
