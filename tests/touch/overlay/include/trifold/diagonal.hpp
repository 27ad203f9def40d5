// SPDX-License-Identifier: BSD-3-Clause
// Diagonal systems diag[i] x[i] = rhs[i].
#pragma once

#include <span>

#include "trifold/context.hpp"
#include "trifold/export.hpp"
#include "trifold/outcome.hpp"

namespace trifold::diagonal {

/// All of one length, contiguous; x may be rhs. A zero in diag is `singular` at its row.
TRIFOLD_API Outcome solve(Queue& queue, std::span<const double> diag, std::span<const double> rhs, std::span<double> x);

}  // namespace trifold::diagonal
