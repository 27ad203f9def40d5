// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backends/cuda/runtime/outcome.hpp"

namespace trifold::cuda {

/// Enqueues: nothing has failed yet. `branch` is a tridiagonal::Algorithm.
void reset_outcome(DeviceOutcome* outcome, std::int64_t rows, std::int64_t systems, int branch, cudaStream_t stream);

}  // namespace trifold::cuda
