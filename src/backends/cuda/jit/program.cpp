// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/jit/program.hpp"

#include <memory>
#include <unordered_map>

#include "backends/cuda/jit/compiler.hpp"
#include "backends/cuda/runtime/runtime.hpp"
#include "base/program_cache.hpp"
#include "base/text_hash.hpp"

namespace trifold::cuda::jit {
namespace {

constexpr ProgramCache cache("kernels", ".cubin", ".cu");

std::string key_of(const std::string& text, int architecture) {
    TextHash hash;
    hash.add(text), hash.add(compiler_key(architecture));
    return hash.text();
}

bool architecture_of_current(int& architecture, Failure& failure) {
    int device = 0, major = 0, minor = 0;
    if (!good(cudaGetDevice(&device), "asking for the device", failure)) return false;
    if (!good(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "asking for the compute capability", failure)) return false;
    if (!good(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "asking for the compute capability", failure)) return false;
    architecture = 10 * major + minor;
    return true;
}

}  // namespace

const void* Program::kernel(const char* name) const {
    const std::lock_guard lock(mutex_);
    const auto [at, added] = kernels_.try_emplace(name, nullptr);
    if (added) {
        cudaKernel_t kernel = nullptr;
        if (cudaLibraryGetKernel(&kernel, library_, name) == cudaSuccess) at->second = static_cast<const void*>(kernel);
        else cudaGetLastError();
    }
    return at->second;
}

bool machine_code(const std::string& text, const std::string& name, int architecture, std::string& cubin, Failure& failure) {
    const std::string key = key_of(text, architecture);
    cubin = cache.load(key);
    if (!cubin.empty()) return true;
    std::string log;
    if (compile(text, name, architecture, cubin, log, failure)) {
        cache.store(key, cubin);
        return true;
    }
    if (!log.empty())
        if (const std::string kept = cache.keep_failure(key, text, log); !kept.empty())
            std::snprintf(failure.hint, sizeof failure.hint, "the text and the compiler's words are in %s", kept.c_str());
    return false;
}

const Program* program(const std::string& text, const std::string& name, Failure& failure) {
    static std::mutex mutex;
    static std::unordered_map<std::string, std::unique_ptr<Program>> known;
    int architecture = 0;
    if (!architecture_of_current(architecture, failure)) return nullptr;
    const std::string key = std::to_string(architecture) + text;  // the long hash, for files, takes as long as some steps do
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(key); found != known.end()) return found->second.get();
    std::string cubin;
    if (!machine_code(text, name, architecture, cubin, failure)) return nullptr;
    cudaLibrary_t library = nullptr;
    if (!good(cudaLibraryLoadData(&library, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0), "loading compiled kernels", failure)) return nullptr;
    return known.emplace(key, std::make_unique<Program>(library)).first->second.get();
}

bool launch(const void* kernel, const LaunchShape& shape, void** arguments, Failure& failure) {
    if (!kernel) return failure.say(ErrorCode::device_unavailable, "a kernel is missing in a compiled program", "this is an error in Trifold");
    cudaLaunchConfig_t config = {};
    config.gridDim = shape.blocks, config.blockDim = shape.threads;
    config.dynamicSmemBytes = shape.shared;
    config.stream = shape.stream;
    cudaLaunchAttribute attributes[3] = {};
    config.attrs = attributes;
    if (shape.cluster > 1) {
        cudaLaunchAttribute& one = attributes[config.numAttrs++];
        one.id = cudaLaunchAttributeClusterDimension;
        one.val.clusterDim.x = shape.cluster, one.val.clusterDim.y = one.val.clusterDim.z = 1;
    }
    if (shape.together) {
        cudaLaunchAttribute& one = attributes[config.numAttrs++];
        one.id = cudaLaunchAttributeCooperative;
        one.val.cooperative = 1;
    }
    if (shape.early) {
        cudaLaunchAttribute& one = attributes[config.numAttrs++];
        one.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        one.val.programmaticStreamSerializationAllowed = 1;
    }
    return good(cudaLaunchKernelExC(&config, kernel, arguments), "launching a compiled kernel", failure);
}

}  // namespace trifold::cuda::jit
