// SPDX-License-Identifier: BSD-3-Clause
// Meshes, sides and fields as the command line names them.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "io/array.hpp"
#include "trifold/mesh.hpp"

namespace trifold::cli {

/// "128x64" or "96x96x96": cells along x, y, z. Throws Error(usage) below 3 cells an axis.
MeshShape mesh_from(const std::string& text, std::int64_t meshes);

/// "dirichlet", "neumann", "periodic" for all sides; or a list of SIDE=KIND[:VALUE], SIDE one of x y z x- x+ y- y+ z- z+: "x-=dirichlet:1,y=periodic".
/// Sides that are not named are dirichlet with value 0. Throws Error(usage) with the nearest name; where a side is named twice, or is of an axis that the mesh has not.
std::array<Sides, 3> sides_from(const std::string& text, const MeshShape& shape);

/// One value per cell: FILE.npy shaped (y, x) or (z, y, x), with one more dimension in front for a batch where `batch`. Throws Error(bad_input)
/// for other shapes and for values that are not finite, naming the first.
io::Array field_from(const std::string& path, const MeshShape& shape, DType dtype, bool batch);

/// Names of initial fields, and one of them made: [mesh][z][y][x].
const std::vector<std::string>& initial_names();
void make_initial(const std::string& name, const MeshShape& shape, const io::Array& to);

/// The array's shape for a mesh: (z, y, x), (y, x) where it has one plane; the batch in front where there is one.
io::Shape array_shape(const MeshShape& shape, DType dtype);

}  // namespace trifold::cli
