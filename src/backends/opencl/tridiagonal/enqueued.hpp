// SPDX-License-Identifier: BSD-3-Clause
// One call on a device with memory of its own, from lock to flush.
#pragma once

#include "backends/opencl/tridiagonal/call.hpp"

namespace trifold::opencl {

/// `work(Call&)` enqueues. False where the driver failed, which `failure` says.
template <class Work>
bool enqueued(int device, const tridiagonal::System& system, const tridiagonal::Launch& launch, void* outcome, Failure& failure, const Work& work) {
    return guarded("enqueueing a solve", failure, [&] {
        Call call(open_device(device), system, launch, outcome);
        call.make();
        work(call);
        call.on.queue.flush();
    });
}

}  // namespace trifold::opencl
