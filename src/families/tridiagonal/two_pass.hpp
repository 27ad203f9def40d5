// SPDX-License-Identifier: BSD-3-Clause
// One huge general system, pivoted. In one pass of five words per row where the device can and the matrix forgets; else in two of
// nine: every chunk is reduced to two rows, these are coupled, every chunk is computed anew between known ends and checked
// (docs/algorithms/two_pass.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "families/tridiagonal/ops.hpp"

namespace trifold::tridiagonal {

/// Rows per chunk; depends on nothing else, so that results do not depend on threads.
std::int64_t two_pass_chunk_rows(std::int64_t rows, DType dtype) noexcept;

/// A chunk is accepted where max|rhs - A x| ≤ this × (max|A| max|x| + max|rhs|) over its rows: 10 unit roundoffs u. Partial
/// pivoting leaves 1 to 5 u; the residual's own rounding is at most 3 u. So the backward error of the system is a few u, and
/// within 10 × that of any method that leaves u. Up to 32 u are accepted where all residuals are below 4 u of the largest
/// such scale of any chunk, so that the backward error of the system is below 4 u; and of systems of 2^19 rows or more what LU leaves in all of
/// them (lu_gathers.hpp), up to 256 u. In place, where nothing can be refined, up to 32 u.
double two_pass_accept(DType dtype) noexcept;

/// Bytes of Launch::scratch for solve_two_pass. Out of place about 1 % of the system; in place the one pass keeps the right-hand side
/// there that it overwrites, with up to a third more. What the two passes use, about 1 %, is enough to solve: `least`. The rare hand-over to LU
/// uses the same block where it is large enough and allocates otherwise.
std::size_t two_pass_workspace(const Ops& ops, const System& system, int threads);
std::size_t two_pass_least_workspace(const Ops& ops, const System& system, int threads);

/// nullptr, or why this driver cannot run on that device, as Ops::refuses.
const char* two_pass_refuses(const Ops& ops, const System& system);

/// Solves one system, to be called where two_pass_refuses() is nullptr. Outcome: `exact` (residual unknown after one pass); `refined` after one step of iterative
/// refinement (x separate from rhs); else what Ops::solve with Algorithm::lu says, with tried_other set: a chunk was not
/// accepted, a column has no pivot, numbers are not finite, or there are fewer rows than two chunks.
/// In place, LU then works on rhs' = A x in the chunks that were stored already: the backward error of the result is that of
/// LU plus what a chunk is stored with (32 u, or what is said of long systems above) and 4 u; where the new x is so much smaller than the old one that this cannot be shown, the outcome is `unstable` and
/// the remedy a separate x. Throws Error(bad_input) where LU's scratch does not fit the memory.
Outcome solve_two_pass(const Ops& ops, const System& system, const Launch& launch);

/// The same with other chunks, chunk_rows ≥ 2, on a device whose `workspace` suffices for them.
Outcome solve_two_pass(const Ops& ops, const System& system, const Launch& launch, std::int64_t chunk_rows);
std::size_t two_pass_workspace(const Ops& ops, const System& system, int threads, std::int64_t chunk_rows);

}  // namespace trifold::tridiagonal
