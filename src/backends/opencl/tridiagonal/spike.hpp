// SPDX-License-Identifier: BSD-3-Clause
// One dominant system by truncated SPIKE in one of oclspkt's mappings, or by Thomas with cached blocks (kernels/spike.cl).
#pragma once

#include "backends/opencl/tridiagonal/call.hpp"

namespace trifold::opencl {

enum class Mapping { cpu, gpu, fpga };

/// The one that the paper has for this kind of device, or the one that TRIFOLD_OPENCL_MAPPING names (cpu, gpu, fpga).
Mapping mapping_of(Kind kind);

/// nullptr, or why not, as Ops::refuses.
const char* spike_refuses(const tridiagonal::System& system);

std::size_t spike_scratch(const tridiagonal::System& system);

/// Waits; kernel by kernel where the device's `spike_times` are wanted. algorithm: truncated_spike or thomas. What the residual does not show to be good is `not_certified` (thomas: `unstable`).
void solve_spike(Call& call, tridiagonal::Algorithm algorithm, Mapping mapping, Outcome& outcome);

}  // namespace trifold::opencl
