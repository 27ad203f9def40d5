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

    /// Of a ring these are the rows of the line that it is opened to (mesh/rings.hpp), but lower[0] is u[0]: with the solution y of that line, x = y - s q, s = scale (y[0] + weight y[n-1]), and
    /// what q takes from the first rows is what an unknown s before them would. Empty: no ring.
    std::vector<T> q;
    T weight = 0, scale = 0;
    bool opened = true;  ///< whether that is safe
};

/// nullptr where `matrix_of` gives the matrix of the line solve: not where a function reads fields, or the step, or differs from
/// line to line. Else why not.
const char* unknown_matrix(const mesh::Checked& checked, int sweep, int line);

/// Whether the lines of a sweep are rings; of two rows none is.
bool is_ring(const mesh::CheckedSweep& sweep, const MeshShape& shape, int axis);

/// Whether all rows between the first and the last one are the same.
template <class T>
bool same_rows(const LineMatrix<T>& matrix);

/// Of a ring's rows, lower[0] and upper[n-1] being its couplings: what LineMatrix has of it.
template <class T>
void open(LineMatrix<T>& ring);

template <class T>
LineMatrix<T> matrix_of(const mesh::Checked& checked, int sweep, int line);

/// Per segment of R rows: R × 1/pivot, R × lower, R × upper, R × fill; then per segment coupling, lower, inverse, upper of the join. Rows beyond the
/// matrix are those of the identity. `reach`: how rows enter what the first row of their segment keeps, where that is a sum. `begins`: per segment, what of
/// that sum is taken away for its first unknown, times the last one of the segment before, and times its own last one. `closing`, of a ring: per segment, how
/// what its first row keeps and its last row enter s, q of its last row, and 0; rings are safe in two segments or more, without a rest.
template <class T>
struct LineTable {
    std::vector<T> factors, joins, reach, begins, closing;
    bool safe = false;

    LineTable(const LineMatrix<T>& matrix, int segment_rows, int segments);
};

/// The same for segments in the lanes of a warp (lanes.cuh): R × segments × {1/pivot, lower}, {upper, fill}, reach of the first row, then the joins, and of a ring how it is closed. Its joins
/// are scans: safe only where products of the join's coefficients add up to little. `alike`: of the segments between the first and the last one, one stands for all.
template <class T>
struct LaneTable {
    std::vector<T> values;
    bool safe = false;

    LaneTable(const LineMatrix<T>& matrix, int segment_rows, int lanes, bool alike = false);
};

}  // namespace trifold::cuda::streaming
