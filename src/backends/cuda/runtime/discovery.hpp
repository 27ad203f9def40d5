// SPDX-License-Identifier: BSD-3-Clause
// Which GPUs there are. Asks the driver, but makes no context on any of them.
#pragma once

namespace trifold::cuda {

/// 0 where there is no driver, or no GPU: absent() then says which, and what to do.
int device_count();
const char* absent();

/// "NVIDIA H200, 132 multiprocessors, 139.8 GiB, compute capability 9.0, CUDA driver 13.0".
const char* describe(int device);

/// Bytes per second that its memory can be expected to move: nine tenths of clock × bus width; 0 where the driver does not say.
double bytes_per_s(int device);

/// nullptr where this build has code for the GPU, else why not.
const char* unusable(int device);

}  // namespace trifold::cuda
