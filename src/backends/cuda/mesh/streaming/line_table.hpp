// SPDX-License-Identifier: BSD-3-Clause
// The matrix of a line solve that is the same on every line, eliminated on the host, once per run: what tridiagonal/shared/segment.cuh and
// join.cuh do on the device, number for number, with the same test of |L||U| against |A|.
#pragma once

#include <vector>

#include "problems/mesh/checked.hpp"

namespace trifold::cuda::streaming {

/// Rows of one line, ends folded.
template <class T>
struct LineMatrix {
    std::vector<T> lower, diag, upper;
    T low = 0, high = 0;  ///< to be subtracted from the first and the last right-hand side
};

/// nullptr where `matrix_of` gives the matrix of the line solve: not in a ring, nor where a function reads fields, or the step, or differs from
/// line to line. Else why not.
const char* unknown_matrix(const mesh::Checked& checked, int sweep, int line);

/// Whether all rows between the first and the last one are the same.
template <class T>
bool same_rows(const LineMatrix<T>& matrix);

template <class T>
LineMatrix<T> matrix_of(const mesh::Checked& checked, int sweep, int line);

/// Per segment of R rows: R × 1/pivot, R × lower, R × upper, R × fill; then per segment coupling, lower, inverse, upper of the join. Rows beyond the
/// matrix are those of the identity. `reach`: how rows enter what the first row of their segment keeps, where that is a sum. `begins`: per segment, what of
/// that sum is taken away for its first unknown, times the last one of the segment before, and times its own last one.
template <class T>
struct LineTable {
    std::vector<T> factors, joins, reach, begins;
    bool safe = false;

    LineTable(const LineMatrix<T>& matrix, int segment_rows, int segments);
};

/// The same for segments in the lanes of a warp (lanes.cuh): R × segments × {1/pivot, lower}, {upper, fill}, reach of the first row, then the joins. Its joins
/// are scans: safe only where products of the join's coefficients add up to little. `alike`: of the segments between the first and the last one, one stands for all.
template <class T>
struct LaneTable {
    std::vector<T> values;
    bool safe = false;

    LaneTable(const LineMatrix<T>& matrix, int segment_rows, int lanes, bool alike = false);
};

}  // namespace trifold::cuda::streaming
