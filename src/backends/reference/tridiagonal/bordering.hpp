// SPDX-License-Identifier: BSD-3-Clause
// Periodic systems by any algorithm for plain ones: the last unknown is kept aside. With T the leading n-1 rows and columns,
//
//   T y = rhs,   T z = -(top_right e_0 + upper[n-2] e_{n-2}),   x = y + z x[n-1]   on rows 0 … n-2
//   (diag[n-1] + bottom_left z[0] + lower[n-1] z[n-2]) x[n-1] = rhs[n-1] - bottom_left y[0] - lower[n-1] y[n-2]
//
// Source: G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., section 4.3.8; the same x as Sherman-Morrison's
// without the change of two diagonal entries. T must be regular, which a dominant or positive definite matrix grants.
#pragma once

#include <algorithm>

#include "backends/reference/tridiagonal/bands.hpp"
#include "backends/reference/tridiagonal/scratch.hpp"

namespace trifold::tridiagonal::reference {

/// n ≥ 3; `plain` is any algorithm of this folder for Bands.
template <class T>
Verdict bordered(Ring<T> ring, Verdict (*plain)(Bands<T>, Scratch), Scratch scratch) {
    const Bands<T>& s = ring.bands;
    const std::int64_t last = s.rows() - 1;
    const Bands<T> leading = s.part(0, last);
    const Bands<T> border{scratch.take<T>(last), scratch.take<T>(last), scratch.take<T>(last), scratch.take<T>(last)};
    std::ranges::copy(leading.lower, border.lower.begin());
    std::ranges::copy(leading.diag, border.diag.begin());
    std::ranges::copy(leading.upper, border.upper.begin());
    border.x[0] = -ring.top_right;
    border.x[last - 1] -= s.upper[last - 1];
    if (const Verdict verdict = plain(leading, scratch); !verdict.good()) return verdict;
    if (const Verdict verdict = plain(border, scratch); !verdict.good()) return verdict;
    const std::span<T> y = leading.x, z = border.x;
    const T pivot = s.diag[last] + ring.bottom_left * z[0] + s.lower[last] * z[last - 1];
    if (pivot == 0) return {Reason::unstable, last};
    s.x[last] = (s.x[last] - ring.bottom_left * y[0] - s.lower[last] * y[last - 1]) / pivot;
    for (std::int64_t i = 0; i < last; ++i) s.x[i] += z[i] * s.x[last];
    return {};
}

}  // namespace trifold::tridiagonal::reference
