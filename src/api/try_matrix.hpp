// SPDX-License-Identifier: BSD-3-Clause
// Whether a matrix that is kept as it is can be solved with: it is, once.
#pragma once

#include <span>

#include "api/kept_layout.hpp"
#include "trifold/context.hpp"

namespace trifold::tridiagonal {

/// Solves on the queue's device with numbers of size 1 to 2 that have no pattern, all that the matrix shares along a batch dimension once; memory for these and x is taken there and given back.
/// Says what a solve ends in: failures and systems are those of the whole batch. Waits. Throws Error.
Outcome try_matrix(Queue& queue, const KeptLayout& kept, std::int64_t rows, std::span<const std::int64_t> batch, DType dtype);

}  // namespace trifold::tridiagonal
