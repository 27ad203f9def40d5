// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/mesh/planes/segments.hpp"

#include <cstddef>
#include <cstdint>

#include "backends/cuda/mesh/streaming/line_table.hpp"

namespace trifold::cuda::planes {
namespace {

using mesh::Checked;
using mesh::CheckedSweep;

/// Timed on an H200. Lanes have an even number of points along x and along y. Larger planes of doubles do not fit on two multiprocessors; on four they wait for each other longer than two passes of the streaming kernels take.
constexpr std::int64_t count = 8, shortest = 64, longest = 128, sides_of = 16, longest_row_of_doubles = 96, most_points_of_doubles = 96 * 80;

/// Segments of fewer planes bring too many twice; of an odd number, or more than so many, kernels for a mesh alone do not take them.
constexpr std::int64_t least_rows_z = 12, best_rows_z = 16, most_rows_z = 24, most_segments_z = 32, most_segments_z_of_doubles = 18;

bool may_be_side(std::int64_t n) { return n >= shortest && n <= longest && n % sides_of == 0; }

/// The longest segments of up to the best number of rows that a line has a whole number of, else the shortest longer ones; 0: none.
int cut_along_z(std::int64_t z, std::int64_t most_segments) {
    const auto fits = [&](std::int64_t rows) { return z % rows == 0 && z / rows >= 2 && z / rows <= most_segments; };
    for (std::int64_t rows = best_rows_z; rows >= least_rows_z; rows -= 2)
        if (fits(rows)) return static_cast<int>(rows);
    for (std::int64_t rows = best_rows_z + 2; rows <= most_rows_z; rows += 2)
        if (fits(rows)) return static_cast<int>(rows);
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
    const bool doubles = checked.dtype == DType::f64;
    if (!may_be_side(shape.x) || !may_be_side(shape.y) || (doubles && (shape.x > longest_row_of_doubles || shape.x * shape.y > most_points_of_doubles))) return {};
    const Segments found{static_cast<int>(count), static_cast<int>(shape.x / count), static_cast<int>(shape.y / count), cut_along_z(shape.z, doubles ? most_segments_z_of_doubles : most_segments_z)};
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
