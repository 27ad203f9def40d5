// SPDX-License-Identifier: BSD-3-Clause
// What the host and planes.cuh know alike: shared memory of a block, tables of factors, and what a pass is told.
#pragma once

#include <cstdint>

#include "backends/cuda/tridiagonal/block/tensor.hpp"

namespace trifold::cuda::planes {

/// Elements, of boxes of nx × ny points a plane: `count` segments along x and along y, of `rows` and `rows_y` rows, `segments_z` of `rows_z` along z. `blocks` of a cluster have a plane, its rows in as many parts.
template <class T>
struct Layout {
    static constexpr int in_vector = 16 / static_cast<int>(sizeof(T));
    static constexpr int in_line = 128 / static_cast<int>(sizeof(T));
    static constexpr int slots = 4;  ///< of planes of the field: one that arrives, and three that a right-hand side reads

    int nx, ny, count, rows, rows_y, rows_z, segments_z, blocks = 1;

    constexpr int plane() const { return nx * ny; }
    constexpr int part() const { return plane() / blocks; }
    /// Two columns of a segment along y are a thread's, and two rows of one along x: where there are fewer of either, some warps have none.
    constexpr int column_threads() const { return nx / 2 * count / blocks; }
    constexpr int row_threads() const { return ny / 2 * count / blocks; }
    constexpr int threads() const { return nx > ny ? column_threads() : row_threads(); }
    /// Lanes along a row are 64 bytes apart, which meet in banks: planes come and go as tensors whose 16 bytes are exchanged within 128.
    constexpr bool swizzled() const { return rows * static_cast<int>(sizeof(T)) == 64; }
    /// Of ends of segments along y: those of a plane are still read when the next ones come from other blocks.
    constexpr int turns() const { return blocks > 1 ? 2 : 1; }
    /// Of one segment's factors: 1/pivot, lower, reach, upper, fill, `of_rows` of each, to the next vector; an odd number of vectors apart, so that lanes meet in no bank.
    static constexpr int padded(int of_rows) { return (of_rows + in_vector - 1) / in_vector * in_vector; }
    static constexpr int apart(int of_rows) { return (5 * padded(of_rows) / in_vector | 1) * in_vector; }
    /// Of all lines along one axis: factors by segment, then coupling, lower, inverse, upper of the join by segment.
    constexpr int table(int of_rows) const { return count * apart(of_rows) + 4 * count; }
    constexpr int tables_xy() const { return table(rows) + table(rows_y); }
    /// Along z: by row 1/pivot, lower, reach, upper, fill; then by segment the join's four numbers and the two of its first row.
    constexpr int table_z() const { return rows_z * segments_z * 5; }
    constexpr int joins_z() const { return 6 * segments_z; }
    constexpr int tables() const { return tables_xy() + table_z() + joins_z(); }

    // Shared memory.
    constexpr int values() const { return slots * part(); }
    constexpr int before() const { return values() + part(); }
    constexpr int last() const { return before() + part(); }
    constexpr int first() const { return last() + turns() * count * nx; }
    constexpr int beside() const { return first() + turns() * (count + 1) * nx; }
    constexpr int along_x() const { return beside() + (blocks > 1 ? 4 * nx : 0); }
    constexpr int along_y() const { return along_x() + table(rows); }
    constexpr int along_z() const { return along_y() + table(rows_y); }
    constexpr int barriers() const { return (along_z() + 5 * rows_z + in_vector - 1) / in_vector * in_vector; }
    static constexpr int barrier_count = slots + 8;
    constexpr int shared_bytes() const { return barriers() * static_cast<int>(sizeof(T)) + 8 * barrier_count + 4 * blocks; }
};

/// A pass goes back through the step before `a.sweep`, and forwards through that of `a.sweep`; the first and the last pass of a run do one of them.
template <class T>
struct Pass {
    const T* from;                      ///< the field before the step that ends here; [mesh][z][y][x], packed but for meshes
    T* to;                              ///< and behind it
    std::int64_t from_apart, to_apart;  ///< of meshes
    T* ends;                            ///< of segments along z, [mesh][segment][first, last plane in memory][y][x]: sums and last rows as eliminated here
    const T* solved;                    ///< likewise: first and last unknowns of the step that ends here
    unsigned char *failed_before, *failed;  ///< per mesh: 1 + the line solve of the step that ends, and begins, in which a line failed
    const T* tables;
    bool up;                            ///< whether planes are gone through from the first to the last
    TensorMap map_from, map_to, map_values, map_ends, map_solved;  ///< of the arrays above, where planes are exchanged on their way: 128 bytes, as many of them, meshes
};

}  // namespace trifold::cuda::planes
