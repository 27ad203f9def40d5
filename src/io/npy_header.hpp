// SPDX-License-Identifier: BSD-3-Clause
// The header of NumPy's .npy format, versions 1.0 to 3.0
// (numpy.org/doc/stable/reference/generated/numpy.lib.format.html): magic, version, length, a Python dict as text.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "io/array.hpp"

namespace trifold::io {

/// Fills `to` with the next bytes of a file or archive entry and returns how many; fewer than asked only at its end.
/// Throws Error(bad_input) where the source is damaged.
using ReadBytes = std::function<std::size_t(void* to, std::size_t bytes)>;

struct NpyHeader {
    Shape shape;
    std::int64_t bytes = 0;  ///< of the header itself: where the values start
};

/// Reads up to the first value. Throws Error(bad_input) at `where` for anything but a dense little-endian f4 or f8
/// array.
NpyHeader read_npy_header(const ReadBytes& read, const std::string& where);

/// Version 1.0, padded so that the values start at a multiple of 64.
std::string format_npy_header(const Shape& shape);

}  // namespace trifold::io
