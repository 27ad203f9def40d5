// SPDX-License-Identifier: BSD-3-Clause
// A device that is in use: its context, one queue in order, programs that are built when first needed.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>

#include "backends/opencl/runtime/arguments.hpp"
#include "backends/opencl/runtime/discovery.hpp"
#include "trifold/dtype.hpp"

namespace trifold::opencl {

/// As source files in ../kernels have it. A kernel is named by its file (without .cl) and its name in there.
struct KernelName {
    const char* file;
    const char* kernel;
};

class OpenDevice;

/// A queue in order, and what kernels in it find.
struct DeviceQueue {
    explicit DeviceQueue(OpenDevice& device, cl_command_queue_properties properties = 0);
    ~DeviceQueue() { ++buffers_given_back; }
    DeviceQueue(const DeviceQueue&) = delete;
    DeviceQueue& operator=(const DeviceQueue&) = delete;
    OpenDevice& device;
    cl::CommandQueue queue;
    cl::Buffer state;    ///< kernels/job.h
    bool fresh = false;  ///< the state is, when all that is enqueued has run

    /// What groups tell each other (kernels/ring.cl), made when first needed, and the last turn that was said of any.
    cl::Buffer letters;
    cl_uint letters_sent = 0;
};

/// Of the last solve by kernels of spike.cl, in seconds on the device.
struct SpikeTimes {
    bool wanted = false;
    double marshalling = 0, solving = 0;
    const char* kernels = "";
};

class OpenDevice {
public:
    explicit OpenDevice(const FoundDevice& found);

    const FoundDevice& info;
    cl::Context context;
    DeviceQueue main;

    /// One that takes times, for what is measured: where times are taken, NVIDIA's driver lets microseconds pass between kernels.
    cl::CommandQueue timed;

    /// Held by whoever enqueues kernels: kernels keep their arguments until they are enqueued.
    std::mutex mutex;

    /// What was enqueued in `main` on trust, to be looked at before anybody else may see it; empty: nothing. False where that failed.
    std::function<bool(Failure&)> look_back;
    bool settle(Failure& failure);

    /// Under `order`: a batch has been enqueued in `main` since somebody looked; batches that are not trusted yet, since one did not hold.
    bool in_a_row = false;
    int wary = 0;

    /// Under `order`: the matrix of the last system that did not forget, whether two passes without pivots did not do for it either, and whether what came of pivots was corrected.
    struct {
        const void* diag = nullptr;
        std::int64_t rows = 0;
        bool wants_pivots = false, wants_correction = false;
    } remembers;

    SpikeTimes spike_times;  ///< under `mutex`

    /// Held by whoever enqueues in `main`, or gives back memory that it may use.
    std::recursive_mutex order;

    /// Items of a group, where so many are wanted: fewer where the kernel allows no more.
    std::size_t group_of(const cl::Kernel& kernel, std::size_t wanted) const;

    /// Enqueues one kernel. A group has fewer items where the kernel allows no more: then items are a multiple of those.
    void run(DeviceQueue& on, const cl::Kernel& kernel, std::size_t items, std::size_t group);

    /// Runs one kernel after all that is enqueued in `main`, and waits. Seconds that it took.
    double run_timed(const cl::Kernel& kernel, std::size_t items, std::size_t group);

    /// A device that works in the host's memory: waits for the kernel that was enqueued last, without a call that could fail: for who must give memory back that kernels may still write to.
    void settle() noexcept;

    /// The compiler's lanes: 64 bytes of numbers on a vector unit, 1 on a GPU.
    int lanes(DType dtype) const { return info.wide ? 1 : 64 / static_cast<int>(size_of(dtype)); }

    /// Throws Stop where the type is not to be had, or with the compiler's words where it does not compile. `defines`: further options.
    KernelArguments& arguments(const KernelName& name, DType dtype, std::string_view defines);

    /// For who sets all arguments.
    cl::Kernel& kernel(const KernelName& name, DType dtype, std::string_view defines = {}) { return arguments(name, dtype, defines).forget(); }

private:
    cl::Program& program(const char* file, DType dtype, const std::string& defines);

    cl::Event last_;
    std::map<std::string, cl::Program> programs_;
    /// By file, kernel, type and options. Names are literals: who finds the same text elsewhere gets a kernel of his own.
    std::map<std::tuple<const char*, const char*, DType>, std::map<std::string, KernelArguments, std::less<>>> kernels_;
    std::map<cl_kernel, std::size_t> most_items_;  ///< of a group, for one kernel: registers may allow fewer than the device does
};

/// Opened when first asked for. Throws cl::Error.
OpenDevice& open_device(int device);

}  // namespace trifold::opencl
