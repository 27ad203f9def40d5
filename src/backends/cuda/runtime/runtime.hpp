// SPDX-License-Identifier: BSD-3-Clause
// Memory, copies, waiting and time of a GPU: devices::Runtime over the CUDA runtime.
#pragma once

#include <cuda_runtime_api.h>

#include "devices/runtime.hpp"

namespace trifold::cuda {

const devices::Runtime& runtime();

/// Makes a device current while it lives, and then the caller's again.
class OnDevice {
public:
    explicit OnDevice(int device);
    ~OnDevice();
    OnDevice(const OnDevice&) = delete;
    OnDevice& operator=(const OnDevice&) = delete;

private:
    int before_ = -1, device_ = -1;
};

/// Returns true where `error` is success; else fills the failure: `doing` says what was being done ("copying to the device").
bool good(cudaError_t error, const char* doing, Failure& failure);

}  // namespace trifold::cuda
