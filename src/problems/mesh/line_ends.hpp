// SPDX-License-Identifier: BSD-3-Clause
// The first and last row of a line whose unknown is mirrored in a side: v[-1] = ±v[0] + c becomes part of row 0, v[n] likewise.
#pragma once

#include <cstdint>

#include "trifold/mesh.hpp"

namespace trifold::mesh {

/// What remains to be done after the matrix was folded.
template <class T>
struct LineEnds {
    T low = 0, high = 0;  ///< to be subtracted from the first and the last right-hand side
    bool ring = false;    ///< lower[0] couples to x[n-1], upper[n-1] to x[0]
};

/// n ≥ 1 rows, `step` elements from one to the next. Except in a ring, lower[0] and upper[n-1] are of no use afterwards.
template <class T>
LineEnds<T> fold_ends(const Sides& sides, std::int64_t n, T* lower, T* diag, T* upper, std::int64_t step = 1) {
    LineEnds<T> ends;
    const std::int64_t last = (n - 1) * step;
    if (sides.low.edge == Edge::periodic) {
        if (n == 1) diag[0] += lower[0] + upper[0];
        if (n == 2) upper[0] += lower[0], lower[last] += upper[last];
        ends.ring = n > 2;
        return ends;
    }
    const auto fold = [](const Side& side, T beyond, T& at_diag) -> T {
        at_diag += side.edge == Edge::even ? beyond : -beyond;
        return side.edge == Edge::even ? T(0) : T(2 * side.value) * beyond;
    };
    ends.low = fold(sides.low, lower[0], diag[0]);
    ends.high = fold(sides.high, upper[last], diag[last]);
    return ends;
}

}  // namespace trifold::mesh
