// SPDX-License-Identifier: BSD-3-Clause
// Boxes whose planes fit on one multiprocessor or on a few, so that a step of a batch of them is one pass (planes.cuh). What decides their roundings: a mesh alone, which is
// solved by the streaming kernels, has the same.
#pragma once

#include "problems/mesh/checked.hpp"

namespace trifold::cuda::planes {

/// Along x and y segments are in lanes or threads side by side. Along z they are a task's planes, and in odd steps elimination begins at the last plane:
/// backwards through the planes of one step is forwards through those of the next.
struct Segments {
    int count = 0;            ///< of a line along x, and of one along y; 0: not such a box
    int rows = 0, rows_y = 0; ///< of each of them, along x and along y
    int rows_z = 0;           ///< of a segment of lines along z

    explicit operator bool() const noexcept { return count > 0 && rows_z > 0; }
};

/// By shape, matrices and functions alone. Asked for are lines along x, y and z, a right-hand side that reads the target alone and of it neighbours along one axis at a time, an
/// update that adds to it, sides of the solution without values, and a matrix along z that is its own mirror image.
Segments segments_of(const mesh::Checked& checked);

}  // namespace trifold::cuda::planes
