// SPDX-License-Identifier: BSD-3-Clause
// Rings of up to 4096 rows, on chip, by the kernel that is best for how they lie.
#pragma once

#include "backends/cuda/tridiagonal/batch.hpp"

namespace trifold::cuda {

/// Whether solve_rings_on_chip is for it.
bool rings_may_be_on_chip(const tridiagonal::System& ring);

/// Of rings that share their matrix: whether there is a kernel which eliminates that once.
bool one_matrix_stays_on_chip(const tridiagonal::System& ring);

/// Enqueues; the outcome has been reset. marks: per ring, set where it is left to pivots, and counted in DeviceOutcome::marked.
void solve_rings_on_chip(const tridiagonal::System& ring, unsigned char* marks, DeviceOutcome* outcome, cudaStream_t stream);

}  // namespace trifold::cuda
