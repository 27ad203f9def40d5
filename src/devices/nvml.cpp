// SPDX-License-Identifier: BSD-3-Clause
#include "devices/nvml.hpp"

#include <dlfcn.h>

#include <string>
#include <type_traits>

namespace trifold::devices::nvml {
namespace {

// nvml.h does not come with every CUDA: these are all of its names that are used. Results are 0 where all went well.
struct Nvml {
    using Device = void*;
    int (*init)() = nullptr;
    int (*handle)(const char* bus, Device* device) = nullptr;
    int (*energy)(Device device, unsigned long long* millijoules) = nullptr;
    int (*power_limit)(Device device, unsigned* milliwatts) = nullptr;
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
        find(power_limit, "nvmlDeviceGetPowerManagementDefaultLimit");
        find(text, "nvmlErrorString");
        if (!why_not.empty()) return;
        if (const int result = init()) why_not = std::string("NVML does not start: ") + text(result);
    }
};

const Nvml& library() {
    static const Nvml once;
    return once;
}

// A number in thousandths of what is wanted.
template <class Number>
bool ask(const char* bus, int (*Nvml::*question)(Nvml::Device, Number*), double* answer, Failure& failure) {
    const Nvml& nvml = library();
    constexpr const char* hint = "does nvidia-smi show the GPU's power?";
    if (!nvml.why_not.empty()) return failure.say(ErrorCode::device_unavailable, nvml.why_not.c_str(), hint);
    Nvml::Device handle = nullptr;
    Number thousandths = 0;
    int result = nvml.handle(bus, &handle);
    if (result == 0) result = (nvml.*question)(handle, &thousandths);
    if (result != 0) return failure.say(ErrorCode::device_unavailable, nvml.text(result), hint);
    *answer = 1e-3 * static_cast<double>(thousandths);
    return true;
}

}  // namespace

bool joules(const char* bus, double* joules, Failure& failure) { return ask(bus, &Nvml::energy, joules, failure); }

bool default_power_limit(const char* bus, double* watts, Failure& failure) { return ask(bus, &Nvml::power_limit, watts, failure); }

}  // namespace trifold::devices::nvml
