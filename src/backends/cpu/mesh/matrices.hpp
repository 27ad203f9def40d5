// SPDX-License-Identifier: BSD-3-Clause
// The matrices of a line solve: once where all lines have the same, else for the lines of a block.
#pragma once

#include <vector>

#include "backends/cpu/mesh/lines.hpp"
#include "base/aligned_buffer.hpp"
#include "families/tridiagonal/mesh_rows.hpp"
#include "problems/mesh/line_ends.hpp"

namespace trifold::cpu {

/// Memory of the matrices of some lines, grown on demand.
template <class T>
class MatrixMemory {
public:
    /// `values`: per diagonal; `lines`: how many rings.
    LineMatrices<T> matrices(std::int64_t values, std::int64_t lines, bool ring) {
        const auto pitch = (static_cast<std::size_t>(values) + 7) / 8 * 8 + 8;
        const std::size_t bytes = (pitch * (ring ? 4 : 3) + (ring ? static_cast<std::size_t>(lines) : 0)) * sizeof(T);
        if (bytes > buffer_.bytes()) buffer_ = AlignedBuffer(bytes);
        T* const first = static_cast<T*>(buffer_.data());
        LineMatrices<T> m;
        m.lower = first, m.diag = first + pitch, m.upper = first + 2 * pitch;
        if (ring) m.spike = first + 3 * pitch, m.gamma = first + 4 * pitch;
        return m;
    }

private:
    AlignedBuffer buffer_;
};

/// Folds the ends of every line and makes rings of those that are; what is left for the right-hand sides goes to `ends`, one
/// per line (inner fastest).
template <class T>
void close_lines(LineMatrices<T>& m, const LineShape& lines, const Sides& sides, const LineTeam& team, std::vector<mesh::LineEnds<T>>& ends) {
    ends.resize(static_cast<std::size_t>(lines.lines()));
    for (std::int64_t o = 0; o < lines.outer; ++o)
        for (std::int64_t j = 0; j < lines.inner; ++j) {
            const std::int64_t at = m.at(o, 0, j);
            ends[static_cast<std::size_t>(o * lines.inner + j)] = mesh::fold_ends(sides, lines.n, m.lower + at, m.diag + at, m.upper + at, m.row_stride);
        }
    if (ends.front().ring) make_ring(m, lines, team);
}

/// Takes from the first and last right-hand side of every line what lies beyond odd sides. ends: one per line, or one for all.
template <class T>
void subtract_ends(const LineShape& lines, const std::vector<mesh::LineEnds<T>>& ends, T* values) {
    if (ends.size() == 1 && ends[0].low == 0 && ends[0].high == 0) return;
    const std::int64_t last = (lines.n - 1) * lines.row_stride;
    for (std::int64_t o = 0; o < lines.outer; ++o)
        for (std::int64_t j = 0; j < lines.inner; ++j) {
            const mesh::LineEnds<T>& end = ends[ends.size() == 1 ? 0 : static_cast<std::size_t>(o * lines.inner + j)];
            T* const line = values + o * lines.outer_stride + j * lines.inner_stride;
            line[0] -= end.low;
            line[last] -= end.high;
        }
}

}  // namespace trifold::cpu
