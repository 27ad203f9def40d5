// SPDX-License-Identifier: BSD-3-Clause
// Sweeps whose meshes stay on chip for all steps of a run (kernel.cuh).
#pragma once

#include "backends/cuda/mesh/plan.hpp"

namespace trifold::cuda {

extern const MeshKind resident_kind;

}  // namespace trifold::cuda
