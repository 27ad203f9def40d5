// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "problems/tridiagonal/system.hpp"

namespace trifold::tridiagonal {

/// An array as an operand: rows `row_stride` elements apart, systems of the first two levels `outer` and `inner`.
inline Operand array_operand(void* data, std::int64_t row_stride = 1, std::int64_t outer = 0, std::int64_t inner = 0) noexcept {
    Operand operand;
    operand.kind = Operand::Kind::view;
    operand.data = data;
    operand.row_stride = row_stride;
    operand.level_stride[0] = outer, operand.level_stride[1] = inner;
    return operand;
}

}  // namespace trifold::tridiagonal
