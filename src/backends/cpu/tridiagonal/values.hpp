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

/// The first row whose coefficients or right-hand side are NaN or infinite, or -1. No generators.
template <class T>
std::int64_t first_not_finite(const tridiagonal::System& line) {
    const Values<T> a(line.lower), b(line.diag), c(line.upper), f(line.rhs);
    for (std::int64_t i = 0; i < line.rows; ++i) {
        const T sum = (i > 0 ? a[i] * 0 : T(0)) + b[i] * 0 + (i + 1 < line.rows ? c[i] * 0 : T(0)) + f[i] * 0;
        if (sum != 0) return i;
    }
    return -1;
}

}  // namespace trifold::cpu
