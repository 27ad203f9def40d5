// SPDX-License-Identifier: BSD-3-Clause
// A device that is in use: its context, one queue in order, programs that are built when first needed.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "backends/opencl/runtime/discovery.hpp"
#include "trifold/dtype.hpp"

namespace trifold::opencl {

/// As source files in ../kernels have it. A kernel is named by its file (without .cl) and its name in there.
struct KernelName {
    const char* file;
    const char* kernel;
};

class OpenDevice {
public:
    explicit OpenDevice(const FoundDevice& found);

    const FoundDevice& info;
    cl::Context context;
    cl::CommandQueue queue;

    /// Held by whoever enqueues: kernels keep their arguments until they are enqueued.
    std::mutex mutex;

    /// The compiler's lanes: 64 bytes of numbers on a vector unit, 1 on a GPU.
    int lanes(DType dtype) const { return info.wide ? 1 : 64 / static_cast<int>(size_of(dtype)); }

    /// Throws Stop where the type is not to be had, or with the compiler's words where it does not compile. `defines`: further options.
    cl::Kernel& kernel(const KernelName& name, DType dtype, const std::string& defines = {});

private:
    cl::Program& program(const char* file, DType dtype, const std::string& defines);

    std::map<std::string, cl::Program> programs_;
    std::map<std::string, cl::Kernel> kernels_;
};

/// Opened when first asked for. Throws cl::Error.
OpenDevice& open_device(int device);

}  // namespace trifold::opencl
