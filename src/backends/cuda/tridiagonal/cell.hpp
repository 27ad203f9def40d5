// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "families/tridiagonal/ops.hpp"

namespace trifold::cuda {

/// The table of cuda:device; lives as long as the process.
const tridiagonal::Ops* tridiagonal_ops(int device);

}  // namespace trifold::cuda
