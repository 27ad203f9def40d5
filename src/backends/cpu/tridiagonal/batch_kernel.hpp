// SPDX-License-Identifier: BSD-3-Clause
// Entry to the batch kernels, dispatched at run time to the widest vectors that this machine has.
#pragma once

#include "backends/cpu/tridiagonal/batch_job.hpp"

namespace trifold::cpu {

/// Solves blocks [first, last) of a batch on the calling thread. scratch: job.scratch_elements() elements, aligned to 64.
void solve_blocks(const BatchJob<float>& job, std::int64_t first, std::int64_t last, float* scratch, void* sink);
void solve_blocks(const BatchJob<double>& job, std::int64_t first, std::int64_t last, double* scratch, void* sink);

/// Of the vectors that are used.
std::int64_t batch_vector_bytes();

}  // namespace trifold::cpu
