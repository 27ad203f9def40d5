// SPDX-License-Identifier: BSD-3-Clause
// Operands of a system as a kernel reads them: any strides, or one scalar. Passed to kernels by value.
#pragma once

#include <cstdint>

#include "problems/tridiagonal/system.hpp"

namespace trifold::cuda {

template <class T>
struct Source {
    T* data = nullptr;  ///< null: the scalar
    T value = 0;
    std::int64_t row_stride = 0;
    std::int64_t level_stride[4] = {};

    Source() = default;
    explicit Source(const tridiagonal::Operand& operand) {
        if (operand.kind == tridiagonal::Operand::Kind::scalar) {
            value = static_cast<T>(operand.value);
            return;
        }
        data = static_cast<T*>(operand.data);
        row_stride = operand.row_stride;
        for (int d = 0; d < 4; ++d) level_stride[d] = operand.level_stride[d];
    }
};

/// The same for one system: where its row 0 is.
template <class T>
struct Line {
    T* data;
    T value;
    std::int64_t row_stride;

    __device__ T operator[](std::int64_t row) const { return data ? data[row * row_stride] : value; }
    __device__ T& at(std::int64_t row) const { return data[row * row_stride]; }
};

/// Numbering of a batch: index k counts over the levels, the last one fastest.
struct Levels {
    int levels = 0;
    std::int64_t extent[4] = {1, 1, 1, 1}, number = 0, number_stride[4] = {};
    std::int64_t systems = 1;

    explicit Levels(const tridiagonal::System& system) : levels(system.levels), number(system.number), systems(system.systems()) {
        for (int d = 0; d < 4; ++d) extent[d] = system.extent[d], number_stride[d] = system.number_stride[d];
    }

    __device__ void indices(std::int64_t k, std::int64_t (&index)[4]) const {
        for (int d = 3; d >= 0; --d) {
            const std::int64_t e = d < levels ? extent[d] : 1;
            index[d] = e > 1 ? k % e : 0;
            k = e > 1 ? k / e : k;
        }
    }

    __device__ std::int64_t number_of(const std::int64_t (&index)[4]) const {
        std::int64_t n = number;
        for (int d = 0; d < 4; ++d) n += index[d] * number_stride[d];
        return n;
    }
};

template <class T>
__device__ Line<T> line_of(const Source<T>& source, const std::int64_t (&index)[4]) {
    T* data = source.data;
    if (data)
        for (int d = 0; d < 4; ++d) data += index[d] * source.level_stride[d];
    return {data, source.value, source.row_stride};
}

}  // namespace trifold::cuda
