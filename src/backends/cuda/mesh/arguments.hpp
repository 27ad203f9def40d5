// SPDX-License-Identifier: BSD-3-Clause
// A checked problem as kernels that read fields from memory see it.
#pragma once

#include "backends/cuda/mesh/views.hpp"
#include "problems/mesh/checked.hpp"

namespace trifold::cuda {

static_assert(most_fields == max_fields && edge_even == static_cast<int>(Edge::even) && edge_odd == static_cast<int>(Edge::odd) && edge_periodic == static_cast<int>(Edge::periodic));

template <class T>
FieldView<T> field_view(const AnyField& field) {
    FieldView<T> view{};
    view.data = static_cast<T*>(field.data);
    for (std::size_t d = 0; d < 4; ++d) view.stride[d] = field.stride[d];
    for (std::size_t axis = 0; axis < 3; ++axis)
        for (int side = 0; side < 2; ++side) {
            const Side& one = side == 0 ? field.sides[axis].low : field.sides[axis].high;
            view.edge[axis][side] = static_cast<unsigned char>(one.edge);
            view.twice[axis][side] = static_cast<T>(2 * one.value);
        }
    return view;
}

/// Shape and fields; the rest is whoever's who runs.
template <class T>
MeshArguments<T> mesh_arguments(const mesh::Checked& checked) {
    MeshArguments<T> arguments{};
    const MeshShape& shape = checked.problem->shape;
    arguments.extent[0] = shape.x, arguments.extent[1] = shape.y, arguments.extent[2] = shape.z, arguments.extent[3] = arguments.meshes = shape.meshes;
    int k = 0;
    for (const AnyField& field : checked.problem->fields) arguments.field[k++] = field_view<T>(field);
    return arguments;
}

}  // namespace trifold::cuda
