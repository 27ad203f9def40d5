// SPDX-License-Identifier: BSD-3-Clause
// The bounds of all stretches, coupled: docs/algorithms/certified.md, section "The whole system".
#pragma once

#include "families/tridiagonal/stretches.hpp"

namespace trifold::tridiagonal {

struct CertifiedBound {
    bool holds = false;       ///< the certificate is a bound, and every block's truncation is within the tolerance
    bool stable = false;      ///< truncation is, and the local solutions agree at their seams: as good as elimination in one go
    double certificate = 0;   ///< ≥ max|error| / max|x| where it holds
    std::int64_t row = -1;    ///< first row of the stretch that broke it
};

CertifiedBound combine(const Stretches& stretches, const StretchBound* bounds, const SweepResult& swept, double tolerance, double roundoff);

}  // namespace trifold::tridiagonal
