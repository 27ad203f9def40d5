// SPDX-License-Identifier: BSD-3-Clause
// The scalar oracle of the tridiagonal family: every option, one system after the other, on one thread.
#pragma once

#include "families/tridiagonal/ops.hpp"

namespace trifold::tridiagonal {

const Ops& reference_ops() noexcept;

}  // namespace trifold::tridiagonal
