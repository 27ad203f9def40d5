// SPDX-License-Identifier: BSD-3-Clause
#include "families/tridiagonal/branch.hpp"

namespace trifold::tridiagonal {

std::size_t branch_workspace(const Ops& ops, const System& system, Algorithm algorithm, int threads) {
    return ops.workspace(system, algorithm, threads);
}

bool run_branch(const Ops& ops, const System& system, Algorithm algorithm, const Launch& launch, Outcome& outcome) {
    ops.solve(system, algorithm, launch, outcome);
    return true;
}

}  // namespace trifold::tridiagonal
