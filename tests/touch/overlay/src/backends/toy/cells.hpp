// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "families/diagonal/ops.hpp"
#include "families/tridiagonal/ops.hpp"

namespace trifold::toy {

const tridiagonal::Ops& tridiagonal_ops() noexcept;
const diagonal::Ops& diagonal_ops() noexcept;

}  // namespace trifold::toy
