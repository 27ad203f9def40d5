// SPDX-License-Identifier: BSD-3-Clause
// PoCL's threads, each on a processor of its own.
#pragma once

#include "backends/opencl/runtime/discovery.hpp"

namespace trifold::opencl {

/// Linux puts both of two threads that are woken for half a millisecond of work on one processor more often than not, and the other one stays idle. So where PoCL has as many threads as
/// processors are allowed to them, each is bound to one of those; where there are more or fewer, where POCL_AFFINITY is set (PoCL then does it, or shall not), or TRIFOLD_OPENCL_AFFINITY=0,
/// all is left as it is. Once per device; what fails changes nothing.
void spread_threads(const FoundDevice& device, const cl::Context& context) noexcept;

}  // namespace trifold::opencl
