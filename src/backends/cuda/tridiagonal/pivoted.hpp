// SPDX-License-Identifier: BSD-3-Clause
// The general path: any layout, LU with partial pivoting, on chip or one thread per system. Exact, and the rescue of the fast paths.
#pragma once

#include "backends/cuda/tridiagonal/batch.hpp"

namespace trifold::cuda {

/// Bytes of scratch for solve_pivoted. More of it lets more systems run at once; no more than this is used.
std::size_t pivoted_scratch(const tridiagonal::System& system);

/// Enqueues, like solve_batch. Where `marks` is given, only systems with a non-zero mark are solved, and those that turn out
/// good are counted as rescued; marks has one byte per system, in the order of system_at (last level fastest). A failed
/// system's x is not written. `marked`, where given, is how many marks are set: nothing is looked for where it is 0.
/// overlapped: on its way while the kernel before it ends. Behind blocks that fill the GPU until the end this takes 2 to 4 µs longer (measured on an H200).
void solve_pivoted(const tridiagonal::System& system, const BatchLaunch& launch, const unsigned char* marks = nullptr,
                   const unsigned long long* marked = nullptr, bool overlapped = true);

}  // namespace trifold::cuda
