// SPDX-License-Identifier: BSD-3-Clause
// User's problem → canonical system: checks shapes, types, memory and aliasing, and folds options into strides.
#pragma once

#include <span>

#include "problems/tridiagonal/system.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::tridiagonal {

/// Throws Error(usage) that names the array, what is wrong with it and what it should be. Reads no array but `offsets`. `device`:
/// where views may lie besides the host.
System normalise(const Problem& problem, Memory device = {});

/// Throws Error(usage) where the caller's scratch lies over an array of the problem.
void check_workspace(const Problem& problem, const Workspace& workspace);

/// The matrix alone, with n rows and these batch dimensions (C order, contiguous numbering); rhs and x stay empty. `device`: as above.
System normalise(const Matrix& matrix, std::int64_t rows, std::span<const std::int64_t> batch, DType dtype, Memory device = {});

/// "contiguous" (rows side by side), "interleaved" (systems side by side), "strided" or "ragged": for reports.
const char* layout_name(const System& system) noexcept;

/// Words that must move per row: each input read once, each output written once, over all systems (DESIGN.md).
double needed_bytes(const System& system) noexcept;

}  // namespace trifold::tridiagonal
