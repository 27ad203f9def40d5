// SPDX-License-Identifier: BSD-3-Clause
// A solve from the host's memory, by a device that computes when it is called: the branches of its decision one after the other until one of them is final.
#pragma once

#include "api/phases.hpp"
#include "devices/context_state.hpp"
#include "families/tridiagonal/branch.hpp"
#include "planner/decision.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::tridiagonal {

/// Short systems that Ops::solve_small takes, one after the other.
Outcome solve_few(const Ops& ops, const System& batch, const Options& options);

class HostSolve {
public:
    HostSolve(Context::State& state, const System& system, const Decision& decision, const Options& options, Phases& phases);

    /// Throws what a branch raised of its device, Error(bad_input) where there is too little memory.
    Outcome run();

    /// Of the branches, without what lies between them.
    double seconds() const noexcept { return seconds_; }
    std::size_t workspace_bytes() const noexcept { return workspace_bytes_; }

private:
    Outcome solve_one(const System& system);
    Outcome solve_each();
    Outcome solve_at_once();
    void take_scratch(int k);
    void log_hand_over(int k, const Outcome& outcome);

    Context::State& state_;
    const System& system_;
    const Decision& decision_;
    const Options& options_;
    Phases& phases_;
    bool scratch_taken_[Decision::max_branches] = {};
    bool first_ = false;        ///< of systems that are solved one by one
    bool at_once_ = false;      ///< the first one was handed over, and so are all
    devices::Scratch scratch_;
    std::size_t workspace_bytes_ = 0;
    double seconds_ = 0;
};

}  // namespace trifold::tridiagonal
