// SPDX-License-Identifier: BSD-3-Clause
// One operand of one system for scalar code: a scalar is an array of stride 0.
#pragma once

#include "problems/tridiagonal/system.hpp"

namespace trifold::cpu {

template <class T>
struct Values {
    const T* data;
    std::int64_t stride;
    T scalar;

    explicit Values(const tridiagonal::Operand& operand) : scalar(static_cast<T>(operand.value)) {
        const bool view = operand.kind == tridiagonal::Operand::Kind::view;
        data = view ? static_cast<const T*>(operand.data) : &scalar;
        stride = view ? operand.row_stride : 0;
    }
    Values(const Values&) = delete;
    T operator[](std::int64_t i) const { return data[i * stride]; }
};

}  // namespace trifold::cpu
