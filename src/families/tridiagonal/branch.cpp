// SPDX-License-Identifier: BSD-3-Clause
#include "families/tridiagonal/branch.hpp"

#include "families/tridiagonal/two_pass.hpp"

namespace trifold::tridiagonal {

std::size_t branch_workspace(const Ops& ops, const System& system, Algorithm algorithm, int threads) {
    switch (algorithm) {
        case Algorithm::two_pass: return two_pass_workspace(ops, system, threads);
        default: return ops.workspace(system, algorithm, threads);
    }
}

bool run_branch(const Ops& ops, const System& system, Algorithm algorithm, const Launch& launch, Outcome& outcome) {
    switch (algorithm) {
        case Algorithm::two_pass: outcome = solve_two_pass(ops, system, launch); return true;
        default: ops.solve(system, algorithm, launch, outcome); return true;
    }
}

}  // namespace trifold::tridiagonal
