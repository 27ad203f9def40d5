// SPDX-License-Identifier: BSD-3-Clause
// Sweeps of any kind, each part a pass over memory (general.cuh).
#pragma once

#include "backends/cuda/mesh/plan.hpp"

namespace trifold::cuda {

extern const MeshKind general_kind;

}  // namespace trifold::cuda
