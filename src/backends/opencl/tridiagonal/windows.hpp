// SPDX-License-Identifier: BSD-3-Clause
// One system in one pass on a GPU: windows with halos, checked (kernels/windows.cl).
#pragma once

#include "backends/opencl/tridiagonal/call.hpp"

namespace trifold::opencl {

/// What the call needs of scratch; 0: windows are not for this system.
std::size_t windows_scratch(const tridiagonal::System& system);

/// Enqueues, and waits for the verdict. False: x is not the answer, and nothing is said yet; rhs is as it was.
bool solve_in_windows(Call& call, Outcome& outcome);

}  // namespace trifold::opencl
