// SPDX-License-Identifier: BSD-3-Clause
// What a point function reads and writes, found in its text.
#pragma once

#include <array>
#include <string_view>

#include "trifold/point_function.hpp"
#include "trifold/sweep.hpp"

namespace trifold::mesh {

/// Rows of one field that are read: bit (dz + max_reach) rows_across + (dy + max_reach), each up to along_x points away along x.
struct FieldAccess {
    unsigned rows = 0;
    std::array<unsigned char, rows_across * rows_across> along_x{};

    bool looks_along_x() const noexcept;
    bool neighbours() const noexcept;
};

struct Access {
    std::array<FieldAccess, max_fields + 1> field{};  ///< the solution of a sweep is the one after the problem's last
    int fields = 0;                                   ///< one more than the largest number of a field that is read
    int outputs = 0, parameters = 0;                  ///< likewise
};

/// Throws Error(usage) naming the function and the place in its text where it leaves the subset: an argument of at, out or p that is
/// no integer as such, an offset beyond max_reach, a field beyond max_fields, results with a gap.
Access access_of(const PointFunction& function);

/// The two fields of a function that is nothing but their sum at the point itself, as the update of a scheme in increments is; else -1, -1.
std::array<int, 2> summands_of(const PointFunction& function);

/// Whether the text of a function has this word in it.
bool mentions(const PointFunction& function, std::string_view word);

}  // namespace trifold::mesh
