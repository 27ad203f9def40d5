// SPDX-License-Identifier: BSD-3-Clause
// The fine verbs of the contract (families/tridiagonal/ops.hpp), chunk after chunk.
#pragma once

#include <cstddef>

#include "families/tridiagonal/ops.hpp"

namespace trifold::tridiagonal::reference {

void reduce(const System& system, const Partition& partition, const Launch& launch, InterfaceRow* rows, std::int64_t* zero_pivot);

void finish(const System& system, const Partition& partition, const Launch& launch, const double* boundary, double accept,
            ChunkResidual* residuals);

void restore(const System& system, const Partition& partition, const Launch& launch, const double* boundary, ChunkResidual* residuals);

/// Scratch bytes for any of them, whatever the partition.
std::size_t verb_bytes(const System& system);

}  // namespace trifold::tridiagonal::reference
