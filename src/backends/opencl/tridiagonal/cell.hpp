// SPDX-License-Identifier: BSD-3-Clause
// The cell opencl × tridiagonal.
#pragma once

#include "families/tridiagonal/ops.hpp"

namespace trifold::opencl {

const tridiagonal::Ops* tridiagonal_ops(int device);

}  // namespace trifold::opencl
