// SPDX-License-Identifier: BSD-3-Clause
// A solve on several devices at a time, or streamed through one: which parts there are, which of them are worth it, and what is learnt.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "families/device.hpp"
#include "families/tridiagonal/split/executor.hpp"
#include "planner/split_choice.hpp"
#include "trifold/context.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::tridiagonal {

/// The devices among which this system can be split; empty where it cannot. Throws Error(usage) where an array does not lie in the host's memory, though
/// several devices were named, Error(device_unavailable) where the only one has not returned from a call. pageable: some array is, for one of them that has memory of its own.
std::vector<split::Part> split_parts(const Context::State& state, const Device& device, const System& system, const Options& options, bool& pageable);

/// How far the matrix remembers: what is learnt of those that do not forget, which take two passes, is kept apart.
split::Reach look_before(const System& system, const Options& options, int threads);

/// What is learnt of this system is learnt of; whether it is coupled is found by a look at its values.
SplitProblem split_problem(const System& system, const Options& options, bool pageable);

/// A look costs what some per cent of a solve do. Where the last systems of this shape were one device's, and this one's matrix is as dominant at some rows, it is taken to remember as far, and nobody
/// looks: the device alone solves any matrix. Who then takes another branch than before is looked at again by the next solve, and so is every sixteenth.
class LastLook {
public:
    LastLook(Context::State& state, const std::vector<split::Part>& all, const SplitProblem& problem, const System& system);

    /// How far it reached; nullptr where it is time to look.
    const split::Reach* reach() const noexcept { return known_ ? &reach_ : nullptr; }

    /// This one took `branch`; looked: it was looked at, and reached so far. False where it was not what it was taken for.
    bool ended(bool alone, const split::Reach* looked, std::string_view branch);

private:
    int glance() const;

    Context::State& state_;
    const System& system_;
    std::string key_;
    split::Reach reach_;
    bool known_ = false;
};

/// Who of them solves, and what is learnt of it.
class SplitTeam {
public:
    SplitTeam(Context::State& state, const Device& device, const std::vector<split::Part>& all, const SplitProblem& problem, const split::Reach& reach, const Options& options);

    const std::vector<split::Part>& all() const noexcept { return all_; }
    const std::vector<split::Part>& chosen() const noexcept { return chosen_; }

    /// That is the host's own device alone: it needs no chunks.
    bool host_alone() const;

    /// Several were named, and one of them shall do it: as if it had been named alone. Else nullptr.
    const split::Part* one_device() const;

    /// One of several, for what it costs and not to be timed.
    bool one_for_good() const noexcept { return all_.size() > 1 && chosen_.size() == 1 && !choice_.learning; }

    /// What is known of the sets for a system like this one, and which was taken.
    Plan plan() const;

    split::Result solve(const System& system, const split::Reach& reach, const Options& options);

    /// They have solved it in so many seconds, or others for them.
    void learn(double seconds, std::span<const DeviceShare> shares = {}, std::span<const TraceEvent> trace = {});

    /// This set has not solved a system like this one in this process: what it then takes is not what it costs, but its trace tells more.
    bool begins() const;

    void add_left_out(std::vector<DeviceShare>& shares) const;

private:
    std::string met_key() const;

    Context::State& state_;
    const Device& device_;
    std::vector<split::Part> all_, chosen_;
    bool left_behind_ = false;  // a call has not returned: its time says nothing
    bool solved_as_thought_ = false;  // in one pass or two as was thought
    std::vector<double> paces_seen_;  // of chosen_, then
    std::vector<SplitMember> members_;
    SplitProblem problem_;
    SplitChoice choice_;
};

/// What the devices would do with a system of this shape, where they can share it: a candidate for every set of them, for a matrix that forgets and for one that does
/// not. Reads no values.
void plan_split(Context::State& state, const Device& device, const System& system, const Options& options, Plan& plan);

}  // namespace trifold::tridiagonal
