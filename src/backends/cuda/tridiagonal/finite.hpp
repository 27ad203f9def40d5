// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "backends/cuda/tridiagonal/batch.hpp"

namespace trifold::cuda {

/// Enqueues a look at every value that a solve would read. Where some are not finite, the first bad row of the first bad system
/// becomes the outcome's first failure; failures counts the bad values.
void check_finite(const tridiagonal::System& system, DeviceOutcome* outcome, cudaStream_t stream);

}  // namespace trifold::cuda
