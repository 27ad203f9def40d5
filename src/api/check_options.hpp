// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "trifold/tridiagonal.hpp"

namespace trifold::tridiagonal {

/// Throws Error(usage) where a value is none of its kind.
void check_options(const Options& options);

}  // namespace trifold::tridiagonal
