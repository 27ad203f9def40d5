// SPDX-License-Identifier: BSD-3-Clause
// Lines whose matrices differ from line to line, but neither from step to step nor from mesh to mesh: eliminated once per run, and kept where that stays in cache.
//
//   as factored.hpp, with scale, lower and upper of every point: 3 words are read where 3 coefficients would be computed, with a division each, and eliminated, with another
//
// Numerics: kept where every row is dominated by its diagonal, strictly, ends folded in: no pivots are needed then (Higham, Accuracy and Stability, 2nd ed., 9.5). Rings: rings.hpp.
#pragma once

#include <vector>

#include "backends/cpu/mesh/lines.hpp"
#include "base/aligned_buffer.hpp"
#include "problems/mesh/line_ends.hpp"

namespace trifold::cpu {

/// All lines of one mesh along an axis.
template <class T>
class KeptLines {
public:
    /// Memory for the coefficients of one mesh, [z][y][x].
    KeptLines(const MeshShape& shape, int axis, bool ring);

    T* lower() const noexcept { return at(0); }
    T* diag() const noexcept { return at(1); }
    T* upper() const noexcept { return at(2); }

    /// Eliminates what was written there. False: not all rows are dominated; the lines are to be solved otherwise.
    bool eliminate(const Sides& sides);

    /// Lines of a part of a mesh: rows `first` … `first` + count - 1 of the mesh's rows along x (axis 0); the planes z (axis 1); or columns, the first at (x, y), of `count` next to each other (axis 2).
    /// values: with strides of their own. status as solve_lines.
    LineFailure solve(std::int64_t first, std::int64_t count, std::int64_t row_stride, std::int64_t line_stride, T* values, std::int8_t* status, T* buffer) const;

    static std::size_t bytes(const MeshShape& shape, bool ring) { return static_cast<std::size_t>((ring ? 4 : 3) * shape.x * shape.y * shape.z) * sizeof(T); }

private:
    T* at(int which) const noexcept { return static_cast<T*>(memory_.data()) + which * pitch_; }
    std::int64_t first_of(std::int64_t line) const noexcept { return axis_ == 0 ? line * n_ : axis_ == 1 ? line / across_ * across_ * n_ + line % across_ : line; }

    int axis_;
    bool ring_;
    std::int64_t n_, apart_, across_, lines_, pitch_;  ///< rows of a line and from one to the next; lines side by side
    AlignedBuffer memory_;
    std::vector<T> gamma_;
    std::vector<mesh::LineEnds<T>> ends_;
    bool valued_ = false;  ///< some ends are not zero
};

}  // namespace trifold::cpu
