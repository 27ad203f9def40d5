// SPDX-License-Identifier: BSD-3-Clause
// Sweeps as one pass over memory per line solve: docs/algorithms/gpu_fused.md.
#pragma once

#include "backends/cuda/mesh/plan.hpp"

namespace trifold::cuda {

extern const MeshKind fused_kind;

}  // namespace trifold::cuda
