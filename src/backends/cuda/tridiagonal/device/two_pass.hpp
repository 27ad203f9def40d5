// SPDX-License-Identifier: BSD-3-Clause
// Long systems, one or several, pivoted, in two passes over their rows (docs/algorithms/gpu_two_pass.md).
#pragma once

#include "backends/cuda/tridiagonal/batch.hpp"

namespace trifold::cuda {

/// nullptr, or why not, as a phrase that follows "because": too few rows to be cut.
const char* two_pass_refuses(const tridiagonal::System& system);

std::size_t two_pass_scratch(const tridiagonal::System& system);

/// From where on its scratch has room for x, which in place is kept there: nobody uses that before the passes begin.
std::size_t two_pass_kept_at(const tridiagonal::System& system);

/// Enqueues, like solve_batch. Systems whose residual is not as small as that of LU with partial pivoting, or in which a column
/// has no pivot, are left to solve_pivoted in the same stream.
void solve_two_pass(const tridiagonal::System& system, const BatchLaunch& launch);

/// What kernels before have left of one system that in_a_cluster takes, in the device's memory.
struct Marked {
    const unsigned char* marks = nullptr;  ///< not 0, or nothing is to be done
    const unsigned long long* wanted = nullptr;
    unsigned long long least_wanted = 0;  ///< *wanted where something is to be done
};

/// The same for this system in one launch, which ends at once where nothing is to be done.
void solve_two_pass(const tridiagonal::System& system, const BatchLaunch& launch, const Marked& marked);

/// One system so short that a cluster of blocks solves it faster than the device, whose blocks wait longer for each other.
bool in_a_cluster(const tridiagonal::System& system);

}  // namespace trifold::cuda
