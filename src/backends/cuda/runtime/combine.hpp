// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trifold/dtype.hpp"

namespace trifold::cuda {

/// devices::Runtime::gather_ends and combine.
void enqueue_gather_ends(DType dtype, std::int64_t count, std::int64_t rows, const void* y, const void* g, const void* h, void* ends, cudaStream_t stream);
void enqueue_combine(DType dtype, std::int64_t count, std::int64_t rows, void* x, const void* g, const void* h, const void* factors, double* sizes, cudaStream_t stream);

}  // namespace trifold::cuda
