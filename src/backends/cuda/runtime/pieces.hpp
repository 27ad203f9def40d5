// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cuda_runtime_api.h>

#include "devices/runtime.hpp"

namespace trifold::cuda {

/// devices::Runtime::close_pieces and judge_pieces.
void enqueue_close_pieces(const devices::Pieces& pieces, cudaStream_t stream);
void enqueue_judge_pieces(const devices::Pieces& pieces, float* worst, cudaStream_t stream);

}  // namespace trifold::cuda
