// SPDX-License-Identifier: BSD-3-Clause
// Batches on the cpu: which level becomes lanes, how blocks are cut and shared among threads, and what becomes of the systems
// that a kernel hands back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "families/tridiagonal/ops.hpp"

namespace trifold::cpu {

/// Reason::exact for every system, by its number.
void mark_all_exact(const tridiagonal::System& system, std::int8_t* status);

/// Bytes of scratch for solve_batch.
std::size_t batch_bytes(const tridiagonal::System& system, tridiagonal::Algorithm algorithm, int threads);

/// A batch (levels ≥ 1, at least one row and one system; views and scalars, neither periodic nor ragged nor accumulating) by
/// Algorithm::automatic, thomas or lu. Results do not depend on the number of threads, nor on which systems share a vector.
///
/// automatic: without pivoting where every row passes the test of batch_rows-inl.h, the other systems with partial
/// pivoting (outcome.rescued). thomas: systems that fail the test, or overflow, are `unstable` or `not_finite`. A system that
/// fails keeps its rhs in place; out of place its rows of x hold rhs. One exception: where only x itself overflows the type,
/// which shows when x is there, a system solved in place holds that x (`not_finite`).
void solve_batch(const tridiagonal::System& system, tridiagonal::Algorithm algorithm, const tridiagonal::Launch& launch, Outcome& outcome);

}  // namespace trifold::cpu
