// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/runtime/discovery.hpp"

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace trifold::cuda {
namespace {

std::string version_text(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

struct Gpu {
    std::string text, unusable;
};

struct Found {
    std::vector<Gpu> gpus;
    std::string absent;
};

// PTX of an architecture runs on every newer one, so that the oldest of TRIFOLD_CUDA_ARCHITECTURES decides.
int oldest_architecture() {
    std::istringstream list(TRIFOLD_CUDA_ARCHITECTURES);
    int oldest = 0;
    for (std::string one; std::getline(list, one, ',');) {
        const int number = std::atoi(one.c_str());
        if (number > 0 && (oldest == 0 || number < oldest)) oldest = number;
    }
    return oldest;
}

Gpu look_at(int device, int driver) {
    Gpu gpu;
    cudaDeviceProp p{};
    if (const cudaError_t error = cudaGetDeviceProperties(&p, device); error != cudaSuccess) {
        cudaGetLastError();
        gpu.unusable = std::string("the driver cannot describe it: ") + cudaGetErrorString(error);
        return gpu;
    }
    char memory[32];
    std::snprintf(memory, sizeof memory, "%.1f GiB", static_cast<double>(p.totalGlobalMem) / (1 << 30));
    gpu.text = std::string(p.name) + ", " + std::to_string(p.multiProcessorCount) + " multiprocessors, " + memory + ", compute capability " +
               std::to_string(p.major) + "." + std::to_string(p.minor) + ", CUDA driver " + version_text(driver);
    const int capability = 10 * p.major + p.minor, oldest = oldest_architecture();
    if (capability < oldest)
        gpu.unusable = "this build has code for compute capability " + std::to_string(oldest / 10) + "." + std::to_string(oldest % 10) +
                       " and newer, and this GPU (" + p.name + ") has " + std::to_string(p.major) + "." + std::to_string(p.minor) +
                       " (configure with -DTRIFOLD_CUDA_ARCHITECTURES=" + std::to_string(capability) + ")";
    return gpu;
}

Found look() {
    Found found;
    int driver = 0, count = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
        cudaGetLastError();
        found.absent = "this machine has no NVIDIA driver (install it: nvidia-smi must work; Trifold was built with CUDA " +
                       version_text(CUDART_VERSION) + ")";
        return found;
    }
    const cudaError_t error = cudaGetDeviceCount(&count);
    cudaGetLastError();
    if (error == cudaErrorInsufficientDriver)
        found.absent = "the NVIDIA driver is for CUDA " + version_text(driver) + ", too old for CUDA " + version_text(CUDART_VERSION) +
                       " that Trifold was built with (install a newer driver)";
    else if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0))
        found.absent = "the NVIDIA driver shows no GPU (does nvidia-smi list one? is CUDA_VISIBLE_DEVICES set?)";
    else if (error != cudaSuccess)
        found.absent = std::string("the NVIDIA driver does not start: ") + cudaGetErrorString(error) + " (does nvidia-smi work?)";
    else
        for (int device = 0; device < count; ++device) found.gpus.push_back(look_at(device, driver));
    return found;
}

const Found& found() {
    static const Found once = look();
    return once;
}

const Gpu& gpu(int device) { return found().gpus[static_cast<std::size_t>(device)]; }

}  // namespace

int device_count() { return static_cast<int>(found().gpus.size()); }

const char* absent() { return found().absent.c_str(); }

const char* describe(int device) { return gpu(device).text.c_str(); }

double bytes_per_s(int device) {
    int kilohertz = 0, bits = 0;
    cudaDeviceGetAttribute(&kilohertz, cudaDevAttrMemoryClockRate, device);
    cudaDeviceGetAttribute(&bits, cudaDevAttrGlobalMemoryBusWidth, device);
    cudaGetLastError();
    return 0.9 * 2 * 1e3 * kilohertz * bits / 8;  // two words per clock
}

const char* unusable(int device) { return gpu(device).unusable.empty() ? nullptr : gpu(device).unusable.c_str(); }

}  // namespace trifold::cuda
