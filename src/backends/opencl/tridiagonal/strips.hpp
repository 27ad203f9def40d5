// SPDX-License-Identifier: BSD-3-Clause
// One system in one pass on a vector unit that works in the host's memory: strips with halos (kernels/strips.cl).
#pragma once

#include <cstddef>

#include "families/tridiagonal/ops.hpp"

namespace trifold::opencl {

/// As Ops::sweep_pivoted and its scratch. Nothing is pivoted here: growth is watched row by row, and seams are compared.
bool sweep_strips(const tridiagonal::System& system, const tridiagonal::Launch& launch);
std::size_t strips_scratch(const tridiagonal::System& system, int threads);

}  // namespace trifold::opencl
