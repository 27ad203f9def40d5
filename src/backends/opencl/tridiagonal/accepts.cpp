// SPDX-License-Identifier: BSD-3-Clause
#include "backends/opencl/tridiagonal/accepts.hpp"

#include "backends/opencl/tridiagonal/coupled.hpp"
#include "backends/opencl/tridiagonal/spike.hpp"
#include "families/tridiagonal/plain.hpp"

namespace trifold::opencl {

using tridiagonal::Algorithm;
using tridiagonal::System;

const char* refuses(const System& system, Algorithm algorithm) {
    if (const char* why = tridiagonal::why_not_plain(system)) return why;
    if (system.systems() >= 0xffffffff) return "this device's kernels number fewer than 2^32 systems";
    switch (algorithm) {
        case Algorithm::automatic:
        case Algorithm::lu: return nullptr;
        case Algorithm::two_pass: return system.levels > 0 ? "this device's two_pass takes one system at a time" : nullptr;
        case Algorithm::thomas:
        case Algorithm::truncated_spike: return spike_refuses(system);
        default: return "the OpenCL backend has no kernel for this algorithm";
    }
}

bool is_spike(Algorithm algorithm) { return algorithm == Algorithm::thomas || algorithm == Algorithm::truncated_spike; }

bool cut_up(const System& system, Algorithm algorithm) {
    return system.levels == 0 && (algorithm == Algorithm::two_pass || (algorithm == Algorithm::automatic && system.rows >= least_cut_rows));
}

}  // namespace trifold::opencl
