// SPDX-License-Identifier: BSD-3-Clause
// Copies of arrays in another type or order.
#pragma once

#include <cstdint>
#include <string>

#include "io/array.hpp"

namespace trifold::io {

/// A copy of `array` in another type, same shape and order; `values` false: its shape only. Throws Error(bad_input) at
/// `where` for a finite f64 that f32 cannot hold; `vanished` counts those that are not 0 and become 0.
Array converted(const Array& array, DType to, bool values, const std::string& where, std::int64_t* vanished = nullptr);

/// The same values with the last index fastest.
Array in_c_order(Array array, const std::string& where);

}  // namespace trifold::io
