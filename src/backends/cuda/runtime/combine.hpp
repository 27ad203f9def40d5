// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trifold/dtype.hpp"

namespace trifold::cuda {

/// devices::Runtime::combine.
void enqueue_combine(DType dtype, std::int64_t rows, void* x, const void* g, const void* h, double alpha, double beta, double* sizes, cudaStream_t stream);

}  // namespace trifold::cuda
