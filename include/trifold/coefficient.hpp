// SPDX-License-Identifier: BSD-3-Clause
// A diagonal of the matrix: a view, one scalar for all rows, or a function that makes the values.
#pragma once

#include <cstdint>
#include <variant>

#include "trifold/view.hpp"

namespace trifold {

/// Fills tile[(i - first_row) * systems + (j - first_system)] with the value of row i in system j, for `rows` rows and
/// `systems` systems. Systems are numbered over the batch dimensions, the last one fastest. Both functions must be
/// pure: a tile may be asked for more than once, in any order and from any thread. Written in the C subset that is
/// common to C++, CUDA and OpenCL, the same text (`source`) can be compiled for a device at run time.
struct Generator {
    void (*fill_f32)(float* tile, std::int64_t first_row, std::int64_t rows, std::int64_t first_system, std::int64_t systems,
                     const void* parameters) = nullptr;
    void (*fill_f64)(double* tile, std::int64_t first_row, std::int64_t rows, std::int64_t first_system, std::int64_t systems,
                     const void* parameters) = nullptr;
    const void* parameters = nullptr;
    std::size_t parameter_bytes = 0;
    const char* source = nullptr;
};

using Coefficient = std::variant<AnyView, double, Generator>;

}  // namespace trifold
