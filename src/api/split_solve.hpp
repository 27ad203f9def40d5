// SPDX-License-Identifier: BSD-3-Clause
// A solve on several devices at a time, or streamed through one: which parts there are, which of them are worth it, and what is learnt.
#pragma once

#include <memory>
#include <span>
#include <string>
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

/// What split_parts asks before it asks where arrays lie: nothing of a driver.
bool may_split(const System& system, const Options& options);

/// A call to it has not returned: Error(device_unavailable).
[[noreturn]] void raise_left_behind(const char* device);

/// The host's own device.
const Ops& split_host_ops();

/// How far the matrix remembers: what is learnt of those that do not forget, which take two passes, is kept apart.
split::Reach look_before(const System& system, const Options& options, int threads);

/// What is learnt of this system is learnt of; whether it is coupled is found by a look at its values.
SplitProblem split_problem(const System& system, const Options& options, bool pageable);

/// One of several, and how it came to be chosen.
struct OneChosen {
    split::Part part;
    std::vector<SplitMember> members;
    SplitProblem problem;
    SplitChoice choice;
    Plan plan;
    std::vector<DeviceShare> left_out;
};

/// Who of them solves, and what is learnt of it.
class SplitTeam {
public:
    SplitTeam(Context::State& state, const Device& device, const std::vector<split::Part>& all, const SplitProblem& problem, const split::Reach& reach, const Options& options);

    const std::vector<split::Part>& all() const noexcept { return all_; }
    const std::vector<split::Part>& chosen() const noexcept { return chosen_; }

    /// That is the host's own device alone: it needs no chunks.
    bool host_alone() const;

    /// Several were named, and one of them shall do it: as if it had been named alone. Else nullptr: so too in place for one that works in the host's memory, since what it could not solve
    /// would be lost; it solves chunks in memory of its own then.
    const split::Part* one_device() const;

    /// One of several, for what it costs and not to be timed.
    bool one_for_good() const { return all_.size() > 1 && (host_alone() || one_device()) && !choice_.learning && counts_; }

    /// That one, or null.
    std::shared_ptr<const OneChosen> one_chosen() const;

    /// What is known of the sets for a system like this one, and which was taken.
    Plan plan() const;

    split::Result solve(const System& system, const split::Reach& reach, const Options& options);

    /// They have solved it in so many seconds, or others for them.
    void learn(double seconds, std::span<const DeviceShare> shares = {}, std::span<const TraceEvent> trace = {});

    /// This set has not solved a system like this one in this process: what it then takes is not what it costs, but its trace tells more.
    bool begins() const;

    void add_left_out(std::vector<DeviceShare>& shares) const;

private:
    void leave_out_late();
    void wait_for_late(const System& system, const split::Reach& reach, const Options& options, split::Setting& setting);
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
    std::uint32_t late_ = 0;  // those that are being made ready
    bool counts_ = true;      // nobody was: what the others take then is not what the set takes
};

/// What the devices would do with a system of this shape, where they can share it: a candidate for every set of them, for a matrix that forgets and for one that does
/// not. Reads no values.
void plan_split(Context::State& state, const Device& device, const System& system, const Options& options, Plan& plan);

}  // namespace trifold::tridiagonal
