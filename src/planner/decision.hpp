// SPDX-License-Identifier: BSD-3-Clause
// What the planner decides for one problem: plain data, made without allocation and without looking at the values.
#pragma once

#include <cstddef>

#include "backends/registry.hpp"
#include "families/tridiagonal/ops.hpp"
#include "problems/tridiagonal/system.hpp"
#include "trifold/context.hpp"
#include "trifold/plan.hpp"

namespace trifold::tridiagonal {

struct Decision {
    static constexpr int max_branches = 4;

    const Ops* ops = nullptr;              ///< who computes: the queue's device; where that one refuses the cpu, else the reference
    Algorithm branch[max_branches] = {};   ///< in the order in which they are tried; `automatic` looks after all that can be, and nothing comes behind it
    int branches = 0;
    bool one_by_one = false;               ///< a batch of few systems, long or small: each is solved like a single one, by these branches
    bool at_once_instead = false;          ///< one by one, and the first of them neither decays nor needs pivots: the batch by `automatic`, which is not slower than what would come next for each
    int at_once_threads = 1, at_once_team = 1;  ///< for that, as `threads` and `team`
    int threads = 1;                       ///< to run them on: no more than help
    int team = 1;                          ///< of them of ours: where a driver has its own, one, since a team goes on spinning on its processors between two kernels
    double predicted_s = 0;                ///< of the first branch
    const char* why = "";                  ///< static text
    const char* delegated_because = nullptr;  ///< the refusal that sent the problem elsewhere
};

/// The device's own table for the queue; throws Error(device_unavailable) where its cell is absent.
const Ops& ops_of(const Queue& queue);

/// With Algorithm::automatic every returned chain ends in a pivoted method; a named algorithm is the only branch. Throws
/// Error(usage) where no device can run a named algorithm on this problem. Needs no profile; uses the Context's where it is
/// already loaded.
Decision decide(const Queue& queue, const System& system, Algorithm requested);

/// Scratch that is enough whatever decide() says of this problem, now or after a profile was measured.
std::size_t workspace_bound(const Queue& queue, const System& system, Algorithm requested);

/// Scratch of the host that a solve takes for certain: what the first branch cannot do without. A branch that another one hands over to asks for
/// its own when it is about to run.
std::size_t certain_workspace(const Queue& queue, const System& system, Algorithm requested);

/// The same decision with every candidate, predicted time and reason: for `plan --explain`.
Plan explain(const Queue& queue, const System& system, Algorithm requested);

}  // namespace trifold::tridiagonal
