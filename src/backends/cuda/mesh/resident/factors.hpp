// SPDX-License-Identifier: BSD-3-Clause
// The matrix of a line solve, eliminated segment by segment as the kernels need it (lines.cuh).
//
// Order of elimination: the first rows of every segment, then the segments' last rows, which are a tridiagonal system, or a ring, of their own
// (F. A. Wang 1981, "A parallel method for tridiagonal equations"); of that the inverse is formed. All in double.
//
// Numerics: nothing is pivoted, so the segments' elimination is accepted where |L||U| ≤ 6 max|row of A| (Higham, Accuracy and Stability of
// Numerical Algorithms, 2nd ed., theorem 9.3; as tridiagonal/shared/segment.cuh), for all right-hand sides at once. Multiplying by an
// inverse G of A that is known to a unit roundoff u errs by no more than about (s + 1) u |G||A||x| with s segments, as a stable
// elimination may; its residual by |A||G| times more, which is accepted up to 100.
#pragma once

#include <span>
#include <vector>

#include "trifold/mesh.hpp"

namespace trifold::cuda::resident {

struct SegmentShape {
    int rows = 0, segments = 1, segment_rows = 0;  ///< of a line; the last segment has what remains
    int padded_rows = 0, padded_segments = 0;      ///< as Layout has them
    bool alike = false;                            ///< only the first, the second and the last segment are appended: the others are as the second
};

/// Appends a line solve's part of the table (layout.cuh): [segment][inverse, lower, reach, upper, fill][padded rows], then coupling and
/// inverse of the join. ends: what the first and the last right-hand side lose. lower, diag, upper: `rows` values, not yet folded;
/// overwritten. False where the elimination is not safe.
template <class T>
bool append_factors(const SegmentShape& shape, const Sides& sides, std::span<T> lower, std::span<T> diag, std::span<T> upper, std::vector<T>& table, T (&ends)[2]);

}  // namespace trifold::cuda::resident
