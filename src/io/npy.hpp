// SPDX-License-Identifier: BSD-3-Clause
// NumPy .npy files of one f32 or f64 array, C or Fortran order, of any size.
#pragma once

#include <string>

#include "io/array.hpp"
#include "io/atomic_file.hpp"
#include "io/npy_header.hpp"

namespace trifold::io {

/// Header and values from `read`, which holds `available` bytes in all (checked before anything is allocated).
/// Throws Error(bad_input) at `where`. `values` false: the shape only, see Array::without_values.
Array read_npy(const ReadBytes& read, std::int64_t available, const std::string& where, bool values = true,
               const Progress& progress = {});

/// From a file.
Array load_npy(const std::string& path, bool values = true, const Progress& progress = {});

/// `data` holds shape.elements() values in the order that shape.fortran says. Written atomically; path "-" is stdout.
void save_npy(const std::string& path, const Shape& shape, const void* data, const Progress& progress = {},
              TemporaryWatch watch = {});

}  // namespace trifold::io
