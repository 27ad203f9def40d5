// SPDX-License-Identifier: BSD-3-Clause
// The contract of the diagonal family: what a device fills.
#pragma once

#include <cstdint>

#include "trifold/outcome.hpp"

namespace trifold::diagonal {

struct Ops {
    /// diag[i] x[i] = rhs[i] for n rows, all contiguous; x may be rhs.
    void (*solve)(const double* diag, const double* rhs, double* x, std::int64_t n, Outcome& outcome);
};

}  // namespace trifold::diagonal
