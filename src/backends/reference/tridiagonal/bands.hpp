// SPDX-License-Identifier: BSD-3-Clause
// One system, gathered into contiguous arrays that an algorithm may overwrite, and what an algorithm says at its end.
//
//   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i]      lower[0] and upper[n-1] are not read
//
// Every algorithm of this folder has the form `Verdict f(Bands<T> s, Scratch scratch)`: s.x holds rhs on entry and x on
// return; lower, diag and upper may hold anything then. After a bad verdict x is undefined.
#pragma once

#include <cstdint>
#include <span>

#include "trifold/outcome.hpp"

namespace trifold::tridiagonal::reference {

template <class T>
struct Bands {
    std::span<T> lower, diag, upper, x;

    std::int64_t rows() const noexcept { return static_cast<std::int64_t>(x.size()); }

    Bands part(std::int64_t first, std::int64_t count) const {
        return {lower.subspan(first, count), diag.subspan(first, count), upper.subspan(first, count), x.subspan(first, count)};
    }
};

/// Bands and the two entries beside them of a periodic system: row 0 has top_right · x[n-1], row n-1 bottom_left · x[0].
template <class T>
struct Ring {
    Bands<T> bands;
    T top_right = 0, bottom_left = 0;
};

struct Verdict {
    Reason reason = Reason::exact;
    std::int64_t row = -1;  ///< the first bad row
    double certificate = Outcome::unknown;

    bool good() const noexcept { return ok(reason); }
};

}  // namespace trifold::tridiagonal::reference
