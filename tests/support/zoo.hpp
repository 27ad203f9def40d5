// SPDX-License-Identifier: BSD-3-Clause
// The test matrices of the literature and some more, by name. Sources: C. Klein and R. Strzodka, Tridiagonal GPU solver with
// scaled partial pivoting at maximum bandwidth, ICPP 2021, table 1 (#1 … #20); L.-W. Chang et al., A scalable, numerically
// stable, high-performance tridiagonal solver using GPUs, SC'12 (#21, clement); N. J. Higham's MATLAB gallery for the closed forms.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "support/bands.hpp"
#include "support/random.hpp"

namespace trifold::tests {

struct ZooEntry {
    const char* name;
    void (*fill)(Bands<double>& s, Random& random);
    bool dense = false;          ///< its making costs O(n^3)
    bool singular_if_odd = false;
    bool far_from_dominant = false;  ///< what needs no pivoting must be solved by every algorithm; this one need not be
};

std::span<const ZooEntry> zoo();

/// Matrix and rhs = A x with x ~ N(3, 1), in double precision; the same for the same seed.
Bands<double> make(const ZooEntry& entry, std::int64_t rows, std::uint64_t seed, bool periodic = false);

/// rhs = A x for the x ~ N(3, 1) of this generator, in double-double and rounded once.
void set_rhs(Bands<double>& s, Random& random);

}  // namespace trifold::tests
