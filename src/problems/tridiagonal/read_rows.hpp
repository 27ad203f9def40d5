// SPDX-License-Identifier: BSD-3-Clause
// Which rows of an array a solve reads. Full arrays of couplings have entries that no equation has: lower's at a first row and upper's at a last one.
#pragma once

#include "trifold/tridiagonal.hpp"

namespace trifold::tridiagonal {

enum class Array { lower, diag, upper, rhs, x };

/// Rows that exist of `view` (of that problem, whose offsets are checked), from the first one that is read to the last one, x: written. Without rows where there is none; packed arrays hold what is read.
AnyView read_rows(const Problem& problem, Array array, const AnyView& view) noexcept;

/// Whether what is read of `view` meets what is written of x. Of a ragged batch every system is looked at.
bool read_where_x_is_written(const Problem& problem, Array array, const AnyView& view) noexcept;

}  // namespace trifold::tridiagonal
