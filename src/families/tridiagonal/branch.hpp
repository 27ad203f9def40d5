// SPDX-License-Identifier: BSD-3-Clause
// One branch of a plan: an algorithm on a device, run by the family's driver where there is one, else by the device's `solve`.
#pragma once

#include "families/tridiagonal/ops.hpp"

namespace trifold::tridiagonal {

/// One system that Ops::solve_small takes; automatic solves leave it to that, whatever else there is.
bool solves_small(const Ops& ops, const System& system) noexcept;

/// One system of up to eight times as many rows: `automatic` of such a device sweeps it from both ends too, in scratch.
bool solves_from_ends(const Ops& ops, const System& system) noexcept;

/// A batch of so few of them that one after another they take less time than a plan and vectors that are not full.
bool solves_few_small(const Ops& ops, const System& batch) noexcept;

/// nullptr, or why this algorithm cannot run on that device, the family's drivers included; as Ops::refuses.
const char* branch_refuses(const Ops& ops, const System& system, Algorithm algorithm);

/// Scratch for run_branch with this algorithm, and what it cannot do without: what is between them makes it faster.
std::size_t branch_workspace(const Ops& ops, const System& system, Algorithm algorithm, int threads);
std::size_t branch_least_workspace(const Ops& ops, const System& system, Algorithm algorithm, int threads);

/// The same for a batch whose systems are solved one after another. Of a ragged one the longest need not take most: shorter systems are cut into more chunks where chunks grow with the rows.
std::size_t lines_workspace(const Ops& ops, const System& batch, Algorithm algorithm, int threads);
std::size_t least_lines_workspace(const Ops& ops, const System& batch, Algorithm algorithm, int threads);

/// Runs one branch. Returns true when `outcome` is final (good or bad); false when the branch hands over to a safer one: rhs
/// then holds the right-hand side, to rounding where it had been overwritten in place, and outcome says why it gave up.
bool run_branch(const Ops& ops, const System& system, Algorithm algorithm, const Launch& launch, Outcome& outcome);

}  // namespace trifold::tridiagonal
