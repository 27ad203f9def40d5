// SPDX-License-Identifier: BSD-3-Clause
// Memory, copies and marks of a device with memory of its own.
#pragma once

#include "devices/runtime.hpp"

namespace trifold::opencl {

const devices::Runtime& runtime();

}  // namespace trifold::opencl
