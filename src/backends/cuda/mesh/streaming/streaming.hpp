// SPDX-License-Identifier: BSD-3-Clause
// Sweeps over meshes too large to stay on chip, with one matrix per axis: right-hand side, lines and update in two or three passes.
#pragma once

#include "backends/cuda/mesh/plan.hpp"

namespace trifold::cuda {

extern const MeshKind streaming_kind;

}  // namespace trifold::cuda
