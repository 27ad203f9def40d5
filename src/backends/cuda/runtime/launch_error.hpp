// SPDX-License-Identifier: BSD-3-Clause
// What launches have left. The runtime's own last error does not do: a call that succeeds after the one that failed takes it back (seen with CUDA 13), and of two kernels the second one would hide the first.
#pragma once

#include <cuda_runtime_api.h>

namespace trifold::cuda {

/// The first error of what this thread has enqueued (runtime/launches.hpp) since the last time, else the runtime's last one. Neither is left.
cudaError_t launch_error();

/// For a kernel that is launched otherwise. Nothing is kept of a success.
void keep_launch_error(cudaError_t error);

}  // namespace trifold::cuda
