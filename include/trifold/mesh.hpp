// SPDX-License-Identifier: BSD-3-Clause
// Fields on regular meshes of one to three dimensions, and what lies beyond their sides.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "trifold/dtype.hpp"
#include "trifold/memory.hpp"

namespace trifold {

/// Points along x, y and z, and how many such meshes there are. An axis that a mesh does not have has one point.
struct MeshShape {
    std::int64_t x = 1, y = 1, z = 1, meshes = 1;

    std::int64_t along(int axis) const noexcept { return axis == 0 ? x : axis == 1 ? y : z; }
    std::int64_t points() const noexcept { return x * y * z * meshes; }
};

/// What a field is beyond the last point of an axis. Points are centres of cells: the side lies half a cell further.
enum class Edge : std::uint8_t {
    even,      ///< mirrored in the side, f(-1) = f(0): no gradient there (Neumann, an insulated side)
    odd,       ///< mirrored about a value on the side, f(-1) = 2 value - f(0) (Dirichlet)
    periodic,  ///< the other end: f(-1) = f(n-1); both sides of an axis or none
};

struct Side {
    Edge edge = Edge::even;
    double value = 0;  ///< of an odd side
};

struct Sides {
    Side low, high;
};

/// A field whose element type is known at run time: the value at (x, y, z) of mesh m is
/// data[x stride[0] + y stride[1] + z stride[2] + m stride[3]]. Strides count elements; 0 shares a value along that axis, or
/// among all meshes.
struct AnyField {
    void* data = nullptr;
    bool writable = false;
    DType dtype = DType::f64;
    Memory memory{};
    std::array<std::int64_t, 4> stride{};
    std::array<Sides, 3> sides{};
};

/// The typed wrapper; Field<const double> is read, Field<double> may be written too.
template <class T>
    requires is_scalar<T>
struct Field : AnyField {
    Field() { dtype = dtype_of<T>, writable = !std::is_const_v<T>; }

    /// x fastest, then y, z and the meshes: a C-ordered array [mesh][z][y][x].
    static Field packed(T* values, const MeshShape& shape, const std::array<Sides, 3>& edges = {}) {
        return strided(values, {1, shape.x, shape.x * shape.y, shape.x * shape.y * shape.z}, edges);
    }

    /// The general form: strides along x, y, z and from mesh to mesh.
    static Field strided(T* values, const std::array<std::int64_t, 4>& strides, const std::array<Sides, 3>& edges = {}) {
        Field field;
        field.data = const_cast<std::remove_const_t<T>*>(values);
        field.stride = strides;
        field.sides = edges;
        return field;
    }
};

}  // namespace trifold
