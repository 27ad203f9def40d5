// SPDX-License-Identifier: BSD-3-Clause
// One system in one pass on a GPU: windows with halos, checked (kernels/windows.cl).
#pragma once

#include "backends/opencl/tridiagonal/call.hpp"

namespace trifold::opencl {

/// What the call needs of scratch; 0: windows are not for this system.
std::size_t windows_scratch(const tridiagonal::System& system);

/// Whether a device has the local memory for them.
bool windows_fit(const FoundDevice& device, DType dtype);

enum class Verdict { waits, told, trusted, hands_on };

/// Enqueues; the outcome is `unstable` where x is not the answer. Where one waits for that, which a system in place needs, false then, and rhs is as it was; `trusted` is counted too;
/// `hands_on` opens the kernels of enqueue_coupled, which follow.
/// doubted: they will probably fail.
bool solve_in_windows(Call& call, Verdict verdict, bool doubted = false);

}  // namespace trifold::opencl
