// SPDX-License-Identifier: BSD-3-Clause
// The cpu's `finish` and `restore` of the tridiagonal contract.
#pragma once

#include "families/tridiagonal/ops.hpp"

namespace trifold::cpu {

/// As Ops::finish, for what two_pass_refuses() lets through. Scratch: two_pass_scratch().
void finish(const tridiagonal::System& system, const tridiagonal::Partition& partition, const tridiagonal::Launch& launch,
            const double* boundary, double accept, tridiagonal::ChunkResidual* residuals);

/// As Ops::restore.
void restore(const tridiagonal::System& system, const tridiagonal::Partition& partition, const tridiagonal::Launch& launch,
             const double* boundary, tridiagonal::ChunkResidual* residuals);

}  // namespace trifold::cpu
