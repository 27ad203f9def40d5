// SPDX-License-Identifier: BSD-3-Clause
// What earlier solves of a thread enqueued: a solve that is asked for again is enqueued without planning, and an idle GPU waits so much less.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/runtime/launches.hpp"
#include "families/tridiagonal/ops.hpp"

namespace trifold::cuda {

/// All that plans and the kernels' arguments come from; the stream is not among it.
struct Call {
    int device = 0;
    tridiagonal::Algorithm algorithm = tridiagonal::Algorithm::automatic;
    tridiagonal::System system;
    void *scratch = nullptr, *outcome = nullptr;
    std::size_t scratch_bytes = 0;
    double tolerance = 0;
    std::int8_t* status = nullptr;

    Call(int device, const tridiagonal::System& system, tridiagonal::Algorithm algorithm, const tridiagonal::Launch& launch, void* outcome)
        : device(device), algorithm(algorithm), system(system), scratch(launch.scratch), outcome(outcome), scratch_bytes(launch.scratch_bytes), tolerance(launch.tolerance),
          status(launch.status) {}
    Call() = default;
    bool operator==(const Call& other) const;
};

bool same(const tridiagonal::System& a, const tridiagonal::System& b);

/// A place for the launches of `call`: full where this thread has enqueued the same before, else empty, of an older call.
Launches& launches_of(const Call& call);

}  // namespace trifold::cuda
