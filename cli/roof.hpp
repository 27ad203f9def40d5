// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "io/tridiagonal_data.hpp"

namespace trifold::cli {

/// Bytes per second of a stream with this problem's mix of reads and writes over this problem's own memory, in well under a
/// second. x is overwritten. 0 where the arrays are too small to tell.
double measure_roof(const io::TridiagonalData& data, const io::Array& x, Context& context);

}  // namespace trifold::cli
