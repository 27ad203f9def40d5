// SPDX-License-Identifier: BSD-3-Clause
// Long systems, one or several, without pivots and checked: in one pass where they decay, else in two
// (docs/algorithms/gpu_single.md).
#pragma once

#include "backends/cuda/tridiagonal/batch.hpp"

namespace trifold::cuda {

/// nullptr, or why not, as a phrase that follows "because".
const char* windows_refuse(const tridiagonal::System& system);

std::size_t windows_scratch(const tridiagonal::System& system);

/// From where on its scratch is free, in place, until it has begun, and has room for rhs.
std::size_t windows_kept_at(const tridiagonal::System& system);

struct WindowsOptions {
    bool after_others = false;  ///< only where what was tried before it in the stream has given up: windows with halos, or all multiprocessors that hold the system
    const void* halos = nullptr;  ///< a certified::Verdict<T>, that of a sweep which leaves it to this kernel; of no blocks where it does not
    int rows_of_half = 0;      ///< and said of so many rows by how much they forget: DeviceOutcome::forgets
    int blocks_before = 0;     ///< of what was tried, which have counted in DeviceOutcome::unstable
    bool fall_back = true;     ///< in two passes, then by two that pivot, in the same launch; else one system is reported as not_certified
};

/// Enqueues, like solve_batch. One system ends as `certified` with a bound, or as `exact` where residuals show the
/// backward error of elimination and no useful bound exists; several end as `exact`.
void solve_windows(const tridiagonal::System& system, const BatchLaunch& launch, const WindowsOptions& options = {});

}  // namespace trifold::cuda
