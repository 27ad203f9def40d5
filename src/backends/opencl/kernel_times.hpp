// SPDX-License-Identifier: BSD-3-Clause
// What kernels of the published mappings take on an OpenCL device (truncated_spike, thomas by name), and marshalling before and after them apart from them, as oclspkt has it.
#pragma once

#include "families/device.hpp"

namespace trifold::opencl {

struct KernelTimes {
    double marshalling = 0, solving = 0;  ///< seconds on the device; 0 where nothing was timed
    const char* kernels = "";             ///< whose: "tdma", or of the "cpu mapping", "gpu mapping", "fpga mapping"
};

/// Of the last solve by them that was timed. wanted: they are timed one by one from now on, and waited for.
KernelTimes kernel_times(const Device& device, bool wanted);

}  // namespace trifold::opencl
