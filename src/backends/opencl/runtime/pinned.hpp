// SPDX-License-Identifier: BSD-3-Clause
// The host's memory that a device copies from and to by itself, while the host goes on: of the driver's making, or a user's. OpenCL has both as buffers
// that stay mapped for as long as they are pinned.
#pragma once

#include <cstddef>

#include "backends/opencl/runtime/device.hpp"

namespace trifold::opencl {

/// Aligned to 256. Throws cl::Error.
void* pin_new(OpenDevice& device, std::size_t bytes);

/// Pins the user's memory. Throws cl::Error.
void pin(OpenDevice& device, void* memory, std::size_t bytes);

/// Either kind; nothing where it is none of ours.
void unpin(void* memory) noexcept;

/// All of it lies in memory that was pinned.
bool is_pinned(const void* memory, std::size_t bytes = 1);

}  // namespace trifold::opencl
