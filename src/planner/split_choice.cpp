// SPDX-License-Identifier: BSD-3-Clause
#include "planner/split_choice.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "devices/contention.hpp"
#include "trifold/error.hpp"

namespace trifold::tridiagonal {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();

// One that did less of the work beside the others than this would have to become so many times faster alone; to see that it does not would cost as much.
constexpr double least_share = 1.0 / 8;

// Several devices are taken where they gain so much over the best single one, and what is taken changes where the other gains so much.
constexpr double worth_a_change = 0.02;

// What a set takes is the median of its last solves: a machine has fast and slow moments, and one lucky solve says as little as one that was disturbed. What comes so near the
// best is timed so often before it is judged.
constexpr int samples = 5, judged_by = 3;
constexpr double near = 0.3;

// The second best is timed again after so many solves, and more where it costs more, so that this takes one per cent of the time at most: what was disturbed when
// it was timed is not left out for good. After a change sooner, since what was left may only have been disturbed: after four solves, eight, …
constexpr double solves_between = 32, most_overhead = 0.01;
constexpr int first_pause = 4;

// A set that was never seen is tried where it is thought to cost no more than this much of the best, and would gain if nobody slowed anybody down.
constexpr double worth_a_look = 1.5;

bool holds(std::uint32_t set, std::size_t k) { return set >> k & 1; }
bool single(std::uint32_t set) { return std::popcount(set) == 1; }

class Knowledge {
public:
    Knowledge(const devices::Rates& rates, std::span<const SplitMember> members, const SplitProblem& problem) : rates_(rates), members_(members), problem_(problem), kind_(problem.kind()) {}

    std::uint32_t all() const { return static_cast<std::uint32_t>((std::uint64_t{1} << members_.size()) - 1); }
    std::string total_key(std::uint32_t set, int sample) const { return "took " + names_of(members_, set) + kind_ + " #" + std::to_string(sample); }
    std::string seen_key(std::uint32_t set) const { return "timed " + names_of(members_, set) + kind_; }
    std::string own_key(std::uint32_t set, std::size_t k) const { return "share " + members_[k].name + " of " + names_of(members_, set) + kind_; }
    std::string kernels_key(std::size_t k) const { return "kernels " + members_[k].name + kind_; }
    std::string taken_key() const { return "taken of " + names_of(members_, all()) + kind_ + " " + name_of(problem_.objective); }
    std::string since_key() const { return "solves since " + taken_key(); }
    std::string pause_key() const { return "pause of " + taken_key(); }

    int seen(std::uint32_t set) const { return static_cast<int>(rates_.of(seen_key(set))); }
    double rate(std::uint32_t set) const {
        double seen_here[samples] = {};
        const int count = std::min(seen(set), samples);
        if (count == 0) return 0;
        for (int k = 0; k < count; ++k) seen_here[k] = rates_.of(total_key(set, k));
        std::sort(seen_here, seen_here + count);
        return seen_here[count / 2];
    }

    /// Its members' rates alone, as far as they were seen.
    double undisturbed(std::uint32_t set) const {
        double sum = 0;
        for (std::size_t k = 0; k < members_.size(); ++k)
            if (holds(set, k)) sum += std::max(rate(1u << k), rates_.of(own_key(all(), k)));
        return sum;
    }
    double own(std::uint32_t set, std::size_t k) const { return single(set) ? rate(set) : rates_.of(own_key(set, k)); }

    SplitEstimate estimate(std::uint32_t set) const {
        SplitEstimate out{nan, nan, seen(set)};
        std::vector<double> rows_per_s(members_.size());
        double total = out.seen > 0 ? rate(set) : 0;
        if (total > 0) {
            for (std::size_t k = 0; k < members_.size(); ++k)
                if (holds(set, k)) rows_per_s[k] = own(set, k);
        } else {
            rows_per_s = modelled(set);
            for (const double one : rows_per_s) total += one;
        }
        if (!(total > 0)) return out;
        out.seconds = problem_.rows / total, out.joules = 0;
        for (std::size_t k = 0; k < members_.size(); ++k) {
            if (!holds(set, k)) continue;
            // A device behind a link computes during its kernels only.
            const double kernels = rates_.of(kernels_key(k));
            out.joules += members_[k].watts > 0 ? members_[k].watts * (members_[k].linked && kernels > 0 ? rows_per_s[k] * out.seconds / kernels : out.seconds) : nan;
        }
        return out;
    }

    double cost(std::uint32_t set) const {
        const SplitEstimate one = estimate(set);
        const double value = problem_.objective == Objective::time ? one.seconds : problem_.objective == Objective::energy ? one.joules : one.joules * one.seconds;
        return value == value ? value : infinity;
    }

private:
    // A set that was never seen, from its members alone, by the contention model; memory gives what the busiest set took of it. Who was not tried alone is at
    // least as fast as beside the others.
    std::vector<double> modelled(std::uint32_t set) const {
        const double words = 5.0 * static_cast<double>(size_of(problem_.dtype));
        devices::Machine machine;
        const auto bytes = [&](std::size_t k) { return problem_.pageable && members_[k].linked ? 3 * words : words; };
        for (std::size_t k = 0; k < members_.size(); ++k) {
            devices::SideBySide device;
            device.name = members_[k].name, device.host_bytes = bytes(k);
            device.rows_per_s = seen(1u << k) > 0 ? rate(1u << k) : rates_.of(own_key(all(), k));
            if (holds(set, k) && !(device.rows_per_s > 0)) return {};
            machine.devices.push_back(std::move(device));
        }
        for (std::uint32_t other = 1; other <= all(); ++other) {
            if (seen(other) <= 0) continue;
            double taken = 0;
            for (std::size_t k = 0; k < members_.size(); ++k)
                if (holds(other, k)) taken += own(other, k) * bytes(k);
            machine.host_bytes_per_s = std::max(machine.host_bytes_per_s, taken);
        }
        for (devices::SideBySide& device : machine.devices)
            if (!(device.rows_per_s > 0)) device.rows_per_s = 1;  // no member of this set
        return devices::together(machine, set, problem_.rows).rows_per_s;
    }

    const devices::Rates& rates_;
    std::span<const SplitMember> members_;
    const SplitProblem& problem_;
    std::string kind_;
};

std::span<const SplitMember> checked(std::span<const SplitMember> members, const SplitProblem& problem) {
    if (problem.objective != Objective::time)
        for (const SplitMember& member : members)
            if (!(member.watts > 0))
                throw Error(ErrorCode::usage, std::string("objective '") + name_of(problem.objective) + "'", "needs the watts of '" + member.name + "'",
                            "Options::watts, or --watts " + member.name + "=WATTS");
    return members.first(std::min<std::size_t>(members.size(), devices::most_devices));
}

}  // namespace

std::string SplitProblem::kind() const {
    return std::string(" ") + (dtype == DType::f32 ? "f32" : "f64") + (coupled ? " coupled" : slowly ? " slowly" : "") + (in_place ? " in place" : "") + (pageable ? " pageable" : "") + " " +
           std::to_string(std::bit_width(static_cast<std::uint64_t>(std::max(rows, 1.0))) / 2);
}

std::string names_of(std::span<const SplitMember> members, std::uint32_t set) {
    std::string text;
    for (std::size_t k = 0; k < members.size(); ++k)
        if (holds(set, k)) text += (text.empty() ? "" : ",") + members[k].name;
    return text;
}

SplitEstimate estimate_members(const devices::Rates& rates, std::span<const SplitMember> members, const SplitProblem& problem, std::uint32_t set) {
    return Knowledge(rates, members, problem).estimate(set);
}

SplitChoice choose_members(const devices::Rates& rates, std::span<const SplitMember> members, const SplitProblem& problem) {
    members = checked(members, problem);
    const Knowledge known(rates, members, problem);
    const std::uint32_t all = known.all();
    if (members.size() < 2) return {all, false};
    if (known.seen(all) < 1) return {all, true};
    for (std::size_t k = 0; k < members.size(); ++k) {
        const std::uint32_t alone = 1u << k;
        if (known.seen(alone) < 1 && (problem.objective != Objective::time || known.own(all, k) >= least_share * known.rate(all))) return {alone, true};
    }

    std::vector<double> costs(all + std::size_t{1}, infinity);
    std::uint32_t best = 0, best_single = 0;
    const auto better = [&](std::uint32_t set, std::uint32_t than) { return than == 0 || costs[set] < costs[than]; };
    for (std::uint32_t set = 1; set <= all; ++set) {
        costs[set] = known.cost(set);
        if (known.seen(set) < 1) continue;
        if (better(set, best)) best = set;
        if (single(set) && better(set, best_single)) best_single = set;
    }
    if (best == 0) return {all, true};
    // One member more or less than the best has.
    std::uint32_t next = 0;
    for (std::uint32_t set = 1; set <= all; ++set) {
        if (known.seen(set) > 0 || !single(set ^ best) || !(costs[set] <= worth_a_look * costs[best])) continue;
        if (problem.objective == Objective::time && known.undisturbed(set) * (1 - worth_a_change) < problem.rows / costs[best]) continue;
        if (better(set, next)) next = set;
    }
    if (next) return {next, true};
    for (std::uint32_t set = 1; set <= all; ++set)
        if (known.seen(set) > 0 && known.seen(set) < judged_by && costs[set] <= (1 + near) * costs[best]) return {set, true};

    const auto taken = static_cast<std::uint32_t>(rates.of(known.taken_key()));
    std::uint32_t other = 0;
    for (std::uint32_t set = 1; set <= all; ++set)
        if (set != taken && known.seen(set) > 0 && better(set, other)) other = set;
    if (other && taken && rates.tally(known.since_key()) >= std::min<double>(std::max(rates.tally(known.pause_key()), first_pause), std::max(solves_between, (costs[other] / costs[best] - 1) / most_overhead))) return {other, true};
    const auto gains = [&](std::uint32_t set, std::uint32_t over) { return costs[set] < (1 - worth_a_change) * costs[over]; };
    if (taken && taken <= all && known.seen(taken) > 0 && !gains(best, taken) && (single(taken) || !best_single || costs[taken] <= costs[best_single])) return {taken, false};
    if (!single(best) && best_single && !gains(best, best_single)) best = best_single;
    return {best, false};
}

void remember(devices::Rates& rates, std::span<const SplitMember> members, const SplitChoice& chosen, const SplitProblem& problem, double seconds, std::span<const SplitWork> work) {
    members = members.first(std::min<std::size_t>(members.size(), devices::most_devices));
    if (!(seconds > 0) || chosen.members == 0 || members.size() < 2) return;
    const Knowledge known(rates, members, problem);
    const std::uint32_t set = chosen.members;
    const int before = known.seen(set);
    rates.set(known.total_key(set, before % samples), problem.rows / seconds);
    rates.set(known.seen_key(set), before + 1);
    for (std::size_t k = 0; k < std::min(members.size(), work.size()); ++k) {
        if (!holds(set, k)) continue;
        if (!single(set)) rates.saw(known.own_key(set, k), work[k].rows / seconds);
        if (work[k].kernel_s > 0) rates.saw(known.kernels_key(k), work[k].rows / work[k].kernel_s);
    }
    if (!chosen.learning && rates.of(known.taken_key()) != set) rates.set_tally(known.pause_key(), first_pause), rates.set(known.taken_key(), set);
    else if (chosen.learning) rates.set_tally(known.pause_key(), std::min(2 * rates.tally(known.pause_key()), 1 << 20));
    rates.set_tally(known.since_key(), chosen.learning ? 0 : rates.tally(known.since_key()) + 1);
}

}  // namespace trifold::tridiagonal
