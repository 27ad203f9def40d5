// SPDX-License-Identifier: BSD-3-Clause
// The cpu's table of the tridiagonal family.
#pragma once

#include "families/tridiagonal/ops.hpp"

namespace trifold::cpu {

const tridiagonal::Ops& cpu_ops() noexcept;

}  // namespace trifold::cpu
