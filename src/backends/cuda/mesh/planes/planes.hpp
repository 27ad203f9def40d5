// SPDX-License-Identifier: BSD-3-Clause
// Sweeps over batches of boxes whose planes fit on one multiprocessor: a step in one pass over memory.
#pragma once

#include "backends/cuda/mesh/plan.hpp"

namespace trifold::cuda {

extern const MeshKind planes_kind;

}  // namespace trifold::cuda
