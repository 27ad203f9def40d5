// SPDX-License-Identifier: BSD-3-Clause
// One solve on its way to an OpenCL device: the system as kernels take it, the buffers that it lies in, kernels enqueued with them.
#pragma once

#include <optional>

#include "backends/opencl/runtime/memory.hpp"
#include "families/tridiagonal/ops.hpp"

#include "backends/opencl/kernels/job.h"

namespace trifold::opencl {

/// Scratch of every call: what kernels take for themselves begins at `work`.
struct ScratchParts {
    std::size_t marks, verdicts, work;
    explicit ScratchParts(const tridiagonal::System& system);
};

/// Bytes that a kernel may touch of a view, both included: rows first … last of every system.
struct Reach {
    const char *first, *last;
};
Reach reach_of(const tridiagonal::Operand& operand, const tridiagonal::System& system, std::int64_t first, std::int64_t last);

/// lower, diag, upper, rhs, x.
constexpr int operands = 5;
const tridiagonal::Operand& operand_of(const tridiagonal::System& system, int k);

/// Of an operand's rows that exist: lower has no first one and upper no last one, whose places may be anybody's. Nothing where it is no array.
std::optional<Reach> reach_of(const tridiagonal::System& system, int k);

class Call {
public:
    /// Locks the device. `outcome`: the device's memory, or null where it works in the host's: then the call has its own.
    Call(OpenDevice& device, const tridiagonal::System& system, const tridiagonal::Launch& launch, void* outcome);

    /// Arrays beyond those of the system, to be named before make(): bytes first … first+bytes-1.
    void touch(const void* first, std::size_t bytes) { touched_.add(first, static_cast<const char*>(first) + bytes - 1); }
    void make();

    /// What kernels take for themselves in scratch.
    Place work() const;
    Place place(const void* address) const { return touched_.at(address); }

    void reset(tridiagonal::Algorithm branch);
    void store(const Found& value);

    /// Kernels find into the queue's state, until `told`: the last one tells the outcome.
    void use_state();
    Telling telling(tridiagonal::Algorithm branch) const { return {static_cast<word>(outcome_place_.offset), fresh(branch)}; }
    void read_outcome(Found& to) { on.queue.enqueueReadBuffer(outcome_place_.buffer, CL_TRUE, outcome_place_.offset, sizeof to, &to); }
    const cl::Buffer& outcome_buffer() const { return outcome_place_.buffer; }
    void told() { on.fresh = true; }

    /// The arguments of SOLVER_ARGUMENTS are set, `more` follow.
    template <class... More>
    void enqueue(const KernelName& name, std::size_t items, std::size_t group, const More&... more) {
        enqueue_as(name, {}, items, group, more...);
    }

    /// A kernel of a shape: `defines` are further options of the compiler.
    template <class... More>
    void enqueue_as(const KernelName& name, std::string_view defines, std::size_t items, std::size_t group, const More&... more) {
        KernelArguments& arguments = device.arguments(name, system.dtype, defines);
        arguments.begin();
        set_common(arguments);
        cl_uint at = common_arguments;
        (arguments.set(at++, more), ...);
        run(arguments.kernel(), items, group);
    }

    /// The kernel itself, for who sets all arguments.
    void run(const cl::Kernel& kernel, std::size_t items, std::size_t group) { device.run(on, kernel, items, group); }

    /// Waits; where the device works in the host's memory, all of it can be read then, and `found` is what was found.
    void wait() { touched_.to_host(); }
    const Found& found() const { return own_found_; }

    OpenDevice& device;
    DeviceQueue& on;
    const tridiagonal::System& system;
    const tridiagonal::Launch& launch;
    Job job{};

    /// Buffers of lower, diag, upper, rhs, x; of a number: that of x.
    cl::Buffer buffers[operands];

private:
    static constexpr cl_uint common_arguments = 10;
    void set_common(KernelArguments& arguments) const;
    Found fresh(tridiagonal::Algorithm branch) const;

    std::unique_lock<std::mutex> lock_;
    Touched touched_;
    Found own_found_{};
    void* outcome_;
    Place outcome_place_, scratch_place_, status_place_;
    const cl::Buffer *found_ = nullptr, *scratch_ = nullptr, *status_ = nullptr;  ///< found: where kernels find into
    Where where_{};
};

/// Makes an outcome of what was found.
void read_found(const Found& from, Outcome& to);

}  // namespace trifold::opencl
