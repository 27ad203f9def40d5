// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backends/cuda/runtime/outcome.hpp"
#include "devices/runtime.hpp"

namespace trifold::cuda {

/// Elements of systems that were solved; others stay as they are. Of index i[] of a copy: status[sum of i[d] × stride[d]].
struct OfSolved {
    const DeviceOutcome* outcome = nullptr;  ///< null: all
    const std::int8_t* status = nullptr;     ///< above 0: solved; read where the outcome has failures
    std::int64_t stride[devices::StridedCopy::most_dims] = {};
};

/// devices::Runtime::copy_strided.
void enqueue_copy_strided(const devices::StridedCopy& copy, cudaStream_t stream, const OfSolved& solved = {});

}  // namespace trifold::cuda
