// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/mesh/planes/segments.hpp"

#include <cstddef>
#include <cstdint>

#include "backends/cuda/mesh/streaming/line_table.hpp"

namespace trifold::cuda::planes {
namespace {

using mesh::Checked;
using mesh::CheckedSweep;

/// Timed on an H200. Larger planes do not fit on a cluster, or wait for each other longer than two passes of the streaming kernels take (of 128² in doubles).
struct Timed {
    std::size_t value_bytes;
    std::int64_t side;
    Segments segments;  ///< as long ones along z as there may be
};

constexpr Timed timed[] = {
    {4, 80, {8, 10, 16}},
    {4, 96, {8, 12, 24}},
    {4, 128, {8, 16, 16}},
    {8, 64, {8, 8, 16}},
    {8, 80, {8, 10, 16}},
};

/// Segments of fewer planes bring too many twice; of an odd number, or more than so many, kernels for a mesh alone do not take them.
constexpr std::int64_t least_rows_z = 12, most_segments_z = 32, most_segments_z_of_doubles = 20;

/// The longest segments that a line has a whole number of; 0: none.
int cut_along_z(std::int64_t z, int most, std::int64_t most_segments) {
    for (std::int64_t rows = most; rows >= least_rows_z; rows -= 2)
        if (z % rows == 0 && z / rows >= 2 && z / rows <= most_segments) return static_cast<int>(rows);
    return 0;
}

/// Of the target: at the point itself, or one point away along one axis.
bool reads_a_star(const CheckedSweep& one) {
    for (int f = 0; f < one.rhs.fields; ++f) {
        const mesh::FieldAccess& access = one.rhs.field[static_cast<std::size_t>(f)];
        if (f != one.sweep->target && access.rows) return false;
        for (int row = 0; row < rows_across * rows_across; ++row) {
            if (!(access.rows >> row & 1)) continue;
            const int y = row % rows_across - max_reach, z = row / rows_across - max_reach, x = access.along_x[static_cast<std::size_t>(row)];
            if (x + y * y + z * z > 1) return false;
        }
    }
    return true;
}

template <class T>
bool mirrors_itself(const streaming::LineMatrix<T>& m) {
    for (std::size_t i = 0, n = m.diag.size(); i < n; ++i)
        if (m.diag[i] != m.diag[n - 1 - i] || m.lower[i] != m.upper[n - 1 - i]) return false;
    return true;
}

}  // namespace

Segments segments_of(const Checked& checked) {
    if (checked.sweeps.size() != 1) return {};
    const CheckedSweep& one = checked.sweeps[0];
    const Sweep& sweep = *one.sweep;
    const MeshShape& shape = checked.problem->shape;
    Segments found;
    for (const Timed& each : timed)
        if (each.value_bytes == size_of(checked.dtype) && each.side == shape.x && each.side == shape.y) found = each.segments, found.rows_z = cut_along_z(shape.z, found.rows_z, each.value_bytes == 8 ? most_segments_z_of_doubles : most_segments_z);
    if (!found || sweep.lines.size() != 3 || !sweep.rhs || !one.adds || !reads_a_star(one)) return {};
    for (int axis = 0; axis < 3; ++axis) {
        const Sides &sides = sweep.solution[static_cast<std::size_t>(axis)], &field = checked.problem->fields[static_cast<std::size_t>(sweep.target)].sides[static_cast<std::size_t>(axis)];
        if (sweep.lines[static_cast<std::size_t>(axis)].axis != axis || streaming::unknown_matrix(checked, 0, axis)) return {};
        if (sides.low.value != 0 || sides.high.value != 0 || sides.low.edge == Edge::periodic || field.low.edge == Edge::periodic || field.high.edge == Edge::periodic) return {};
    }
    const bool mirrored = checked.dtype == DType::f32 ? mirrors_itself(streaming::matrix_of<float>(checked, 0, 2)) : mirrors_itself(streaming::matrix_of<double>(checked, 0, 2));
    return mirrored ? found : Segments{};
}

}  // namespace trifold::cuda::planes
