// SPDX-License-Identifier: BSD-3-Clause
// Programs compiled at run time, as kernels that can be launched: compiled once per text, found again in memory, then in files.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>
#include <string>

#include "base/failure.hpp"

namespace trifold::cuda::jit {

/// Lives until the process ends.
class Program {
public:
    explicit Program(cudaLibrary_t library) : library_(library) {}

    /// Of an extern "C" __global__ function; as the first argument of cudaLaunchKernelExC, cudaFuncSetAttribute and their like.
    /// Null where there is none of that name.
    const void* kernel(const char* name) const;

private:
    cudaLibrary_t library_;
    mutable std::mutex mutex_;
    mutable std::map<std::string, const void*> kernels_;
};

/// For the current device. `name` is what errors are of. Null: failure says why.
const Program* program(const std::string& text, const std::string& name, Failure& failure);

/// Machine code, from the cache or the compiler.
bool machine_code(const std::string& text, const std::string& name, int architecture, std::string& cubin, Failure& failure);

struct LaunchShape {
    dim3 blocks{}, threads{};
    std::size_t shared = 0;
    bool early = false;  ///< its blocks may come while the kernel before it ends: it waits by itself where it needs that one's results
    bool together = false;  ///< all blocks run at the same time, or none does
    unsigned cluster = 1;
    cudaStream_t stream = nullptr;
};

bool launch(const void* kernel, const LaunchShape& shape, void** arguments, Failure& failure);

template <class... Arguments>
bool launch(const void* kernel, const LaunchShape& shape, Failure& failure, const Arguments&... arguments) {
    void* list[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
    return launch(kernel, shape, list, failure);
}

}  // namespace trifold::cuda::jit
