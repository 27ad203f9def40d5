// SPDX-License-Identifier: BSD-3-Clause
// One system from its operands to its x: gather, solve by the algorithm that was named, check, store.
#pragma once

#include <cstddef>

#include "backends/reference/tridiagonal/bands.hpp"
#include "backends/reference/tridiagonal/scratch.hpp"
#include "problems/tridiagonal/system.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::tridiagonal::reference {

/// Units of roundoff. What an unpivoted algorithm leaves below the first is `exact`, as of one with pivots; below the second it is refined once, and
/// `refined` where the first is reached then; else `unstable`. A truncated one is `certified` below the second.
inline constexpr double exact_residual = 16, accepted_residual = 1e3;

struct LineResult {
    Verdict verdict;
    double residual = Outcome::unknown;
};

/// system.levels == 0, rows ≥ 1. x is stored where the verdict is good, else left alone.
template <class T>
LineResult solve_line(const System& system, Algorithm algorithm, double tolerance, Scratch scratch);

/// Scratch bytes for the longest line of `system`.
std::size_t line_bytes(const System& system, Algorithm algorithm);

}  // namespace trifold::tridiagonal::reference
