// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cuda_runtime_api.h>

#include "devices/runtime.hpp"

namespace trifold::cuda {

/// devices::Runtime::copy_strided.
void enqueue_copy_strided(const devices::StridedCopy& copy, cudaStream_t stream);

}  // namespace trifold::cuda
