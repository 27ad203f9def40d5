// SPDX-License-Identifier: BSD-3-Clause
#include "planner/split_choice.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "devices/contention.hpp"
#include "trifold/error.hpp"

namespace trifold::tridiagonal {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();

// One that did less of the work beside the others than this would have to become so many times faster alone; to see that it does not would cost as much.
constexpr double least_share = 1.0 / 8;

// A device that others slow down is, where we have seen it, up to twice as fast alone; one that takes a system whole need not solve it in two passes over its link.
constexpr double alone_at_most = 2.2, whole_at_most = 3;

// One that was never seen alone, and would be the fastest if it became so much faster, is tried after so many solves.
constexpr double tried_after = 8;

// Several devices are taken where they gain so much over the best single one, and what is taken changes where the other gains so much.
constexpr double worth_a_change = 0.02;

// What a set takes is the median of its last solves: a machine has fast and slow moments, and one lucky solve says as little as one that was disturbed.
constexpr int samples = 9;

// A median of few values is wrong by so much of their median deviation over the root of their number (normal noise). Several devices have to gain more than one and a half of such an error of theirs and of the single one's.
constexpr double error_of_median = 1.2533 * 1.4826, surely = 1.5;

// Another set than the one that is taken is timed again after so many solves, and more where it costs more, so that this takes one per cent of the time at most: what was
// disturbed when it was timed is not left out for good. What was taken before sooner, since it may only have been disturbed: after four solves, eight, …
constexpr double solves_between = 32, most_overhead = 0.01, first_pause = 4, most_pause = 1 << 20;

// What was seen less often than this is looked at again for three per cent of the time. So is what was never seen, where it is thought to cost no more than `worth_a_look` of the best and
// would gain if nobody slowed anybody down: not before what was seen has been made use of.
constexpr int judged_by = 3;
constexpr double worth_a_look = 1.5, look_overhead = 0.03, looks_after = 3;

// What took less time than what is taken, or so many times as long, is not tried once more at once.
constexpr double worth_a_second = 1.5;

// The best device alone and the best several, between which it is decided: sooner. Where several are taken that gain less than a twentieth, the best single one is timed again after so many solves: it may have been timed
// when the machine was slow.
constexpr double rival_overhead = 0.1, close_rival = 0.05, close_rival_between = 20;

// Several that were taken and left again, since one of them alone was as fast, have to gain twice as much the next time, and are looked at half as often; one such time is forgotten after so many solves.
constexpr int most_lost = 3;
constexpr double lost_for = 512;

bool holds(std::uint32_t set, std::size_t k) { return set >> k & 1; }
bool single(std::uint32_t set) { return std::popcount(set) == 1; }

class Knowledge {
public:
    Knowledge(const devices::Rates& rates, std::span<const SplitMember> members, const SplitProblem& problem)
        : rates_(rates), members_(members), problem_(problem), all_(static_cast<std::uint32_t>((std::uint64_t{1} << members.size()) - 1)), kind_(problem.kind()), of_all_(" of " + names_of(members, all_) + kind_) {}

    std::uint32_t all() const { return all_; }
    std::string total_key(std::uint32_t set, int sample) const { return "took " + of(set).name + " #" + std::to_string(sample); }
    std::string seen_key(std::uint32_t set) const { return "timed " + of(set).name; }
    std::string beginning_key(std::uint32_t set) const { return "began " + of(set).name; }
    std::string beginnings_key(std::uint32_t set) const { return "beginnings " + of(set).name; }
    std::string own_key(std::uint32_t set, std::size_t k) const { return "share " + members_[k].name + " of " + of(set).name; }
    std::string kernels_key(std::size_t k) const { return "kernels " + members_[k].name + kind_; }
    std::string taken_key() const { return "taken" + of_all_ + " " + name_of(problem_.objective); }
    std::string pause_key() const { return "pause" + of_all_ + " " + name_of(problem_.objective); }
    std::string left_key() const { return "left" + of_all_ + " " + name_of(problem_.objective); }
    std::string lost_key(std::uint32_t set) const { return "lost " + names_of(members_, set) + of_all_ + " " + name_of(problem_.objective); }
    std::string lost_at_key(std::uint32_t set) const { return lost_key(set) + " at"; }
    std::string warming_key() const { return "warming" + of_all_ + " " + name_of(problem_.objective); }
    std::string solves_key() const { return "solves" + of_all_; }
    std::string last_key(std::uint32_t set) const { return "last " + names_of(members_, set) + of_all_; }
    std::string sets_key() const { return "sets" + of_all_; }
    std::string sets_key(int number) const { return sets_key() + " #" + std::to_string(number); }

    int timed(std::uint32_t set) const { return of(set).timed; }
    int seen(std::uint32_t set) const { return of(set).seen; }
    double rate(std::uint32_t set) const { return of(set).rate; }

    /// Of that rate, relative; 0 where too little was seen to tell.
    double error(std::uint32_t set) const { return of(set).error; }

    /// All rows of its last solves over all their time, which one that took three times as long counts in; 0 as above.
    double mean_rate(std::uint32_t set) const { return of(set).mean_rate; }

    /// How often it was taken and left again lately.
    int lost(std::uint32_t set) const {
        if (single(set)) return 0;
        const double times = rates_.of(lost_key(set));
        return times > 0 ? std::max(0, static_cast<int>(times - std::floor((rates_.of(solves_key()) - rates_.of(lost_at_key(set))) / lost_for))) : 0;
    }

    /// Those that were seen, each alone, everybody, and those of one member more or less than `near` has.
    std::vector<std::uint32_t> candidates(std::uint32_t near) const {
        std::vector<std::uint32_t> sets{all()};
        for (std::size_t k = 0; k < members_.size(); ++k) {
            sets.push_back(1u << k);
            if (near && (near ^ 1u << k)) sets.push_back(near ^ 1u << k);
        }
        for (int k = 0; k < static_cast<int>(rates_.of(sets_key())); ++k)
            if (const double set = rates_.of(sets_key(k)); set >= 1 && set <= all()) sets.push_back(static_cast<std::uint32_t>(set));
        std::sort(sets.begin(), sets.end());
        sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
        return sets;
    }

    /// Its members' rates alone, as far as they were seen.
    double undisturbed(std::uint32_t set) const {
        double sum = 0;
        for (std::size_t k = 0; k < members_.size(); ++k)
            if (holds(set, k)) sum += std::max(rate(1u << k), own(all(), k));
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

    /// Rows per second that a device may have alone, by what it does beside the others.
    double at_most(std::size_t k) const { return (problem_.coupled && members_[k].linked ? whole_at_most : alone_at_most) * own(all(), k); }

    /// After how many solves `set`, which costs so much more than the best, may be timed. rival: the choice is between it and what is taken.
    double due_in(std::uint32_t set, double more, bool rival, double best_rate) const {
        double wait = std::max(solves_between, more / most_overhead);
        // The first time of a set may have compiled programs that are kept: what that cost says nothing of the next one's.
        if (seen(set) < 1) {
            wait = std::max(looks_after, more / look_overhead);
            if (problem_.objective == Objective::time && single(set) && at_most(static_cast<std::size_t>(std::countr_zero(set))) > best_rate) wait = std::min(wait, tried_after);
        } else if (timed(set) == 0 && rates_.of(beginnings_key(set)) < judged_by) wait = first_pause * rates_.of(beginnings_key(set));
        else if (set == static_cast<std::uint32_t>(rates_.of(left_key()))) wait = std::min(wait, std::max(rates_.of(pause_key()), first_pause));
        else if (seen(set) < judged_by) wait = rival ? std::max<double>(seen(set), more / rival_overhead) : std::max(first_pause * seen(set), more / look_overhead);
        else if (rival && single(set) && more < close_rival) wait = std::min(wait, close_rival_between);
        return std::ldexp(wait, lost(set)) - (rates_.of(solves_key()) - rates_.of(last_key(set)));
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
            device.rows_per_s = seen(1u << k) > 0 ? rate(1u << k) : own(all(), k);
            if (holds(set, k) && !(device.rows_per_s > 0)) return {};
            machine.devices.push_back(std::move(device));
        }
        for (const std::uint32_t other : candidates(0)) {
            if (seen(other) <= 0) continue;
            double taken = 0;
            for (std::size_t k = 0; k < members_.size(); ++k)
                if (holds(other, k)) taken += own(other, k) * bytes(k);
            machine.host_bytes_per_s = std::max(machine.host_bytes_per_s, taken);
        }
        if (!(machine.host_bytes_per_s > 0)) return {};
        for (devices::SideBySide& device : machine.devices)
            if (!(device.rows_per_s > 0)) device.rows_per_s = 1;  // no member of this set
        return devices::together(machine, set, problem_.rows).rows_per_s;
    }

    struct Facts {
        std::string name;  // of the set, and of the kind of system
        int timed = 0, seen = 0;
        double rate = 0, error = 0, mean_rate = 0;
    };

    const Facts& of(std::uint32_t set) const {
        const auto [at, fresh] = facts_.try_emplace(set);
        Facts& one = at->second;
        if (!fresh) return one;
        one.name = names_of(members_, set) + kind_;
        one.timed = one.seen = static_cast<int>(rates_.of("timed " + one.name));
        const int count = std::min(one.timed, samples);
        std::vector<double> known;
        for (int k = 0; k < count; ++k) known.push_back(rates_.of("took " + one.name + " #" + std::to_string(k)));
        std::sort(known.begin(), known.end());
        const std::size_t middle = known.size() / 2;
        if (count > 0) {
            one.rate = known[middle];
            if (count < judged_by) return one;
            double time = 0;
            for (double& rate : known) time += 1 / rate, rate = std::abs(rate - one.rate);
            one.mean_rate = count / time;
            std::sort(known.begin(), known.end());
            one.error = error_of_median * known[middle] / one.rate / std::sqrt(count);
            return one;
        }
        // Where this process has not begun with it, its beginning in another one has to do.
        const std::string began = "began " + one.name;
        if (const double rate = rates_.of(began); rate > 0 && rates_.tally(began) == 0) one.seen = 1, one.rate = rate;
        return one;
    }

    const devices::Rates& rates_;
    std::span<const SplitMember> members_;
    const SplitProblem& problem_;
    const std::uint32_t all_;
    const std::string kind_, of_all_;
    mutable std::map<std::uint32_t, Facts> facts_;  // as far as they were asked for
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

int size_class(double rows) { return std::bit_width(static_cast<std::uint64_t>(std::max(rows, 1.0))) / 2; }

std::string SplitProblem::kind() const {
    return std::string(" ") + (dtype == DType::f32 ? "f32" : "f64") + (coupled ? " coupled" : slowly ? " slowly" : "") + (in_place ? " in place" : "") + (pageable ? " pageable" : "") + " " +
           std::to_string(size_class(rows));
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
    // Then alone who did most of it, and who would be as fast as all of them if it became so many times faster alone. For joules everybody, since they differ far more.
    const bool time = problem.objective == Objective::time;
    std::size_t first = 0;
    for (std::size_t k = 0; k < members.size(); ++k) {
        if (!time && known.seen(1u << k) < 1) return {1u << k, true};
        if (known.own(all, k) > known.own(all, first)) first = k;
    }
    if (known.seen(1u << first) < 1) return {1u << first, true};
    for (std::size_t k = 0; k < members.size(); ++k)
        if (known.seen(1u << k) < 1 && known.at_most(k) >= known.rate(all)) return {1u << k, true};

    std::map<std::uint32_t, double> costs;
    std::uint32_t best = 0, best_single = 0, best_several = 0;
    const auto better = [&](std::uint32_t set, std::uint32_t than) { return than == 0 || costs[set] < costs[than]; };
    for (const std::uint32_t set : known.candidates(0)) {
        if (known.seen(set) < 1) continue;
        costs[set] = known.cost(set);
        if (better(set, best)) best = set;
        std::uint32_t& of_its_kind = single(set) ? best_single : best_several;
        if (better(set, of_its_kind)) of_its_kind = set;
    }
    if (best == 0) return {all, true};
    const auto promising = [&](std::uint32_t set) {
        if (single(set)) return known.own(all, static_cast<std::size_t>(std::countr_zero(set))) >= least_share * known.rate(all);
        // One member more or less than the best has.
        return single(set ^ best) && costs[set] <= worth_a_look * costs[best] && (!time || known.undisturbed(set) * (1 - worth_a_change) >= problem.rows / costs[best]);
    };
    const auto taken = static_cast<std::uint32_t>(rates.of(known.taken_key()));
    std::uint32_t other = 0;
    double quiet = most_pause;
    for (const std::uint32_t set : known.candidates(best)) {
        if (costs.find(set) == costs.end()) costs[set] = known.cost(set);
        if (set == taken || (known.seen(set) < 1 && !promising(set))) continue;
        const bool rival = (set == best_single && !single(taken)) || (set == best_several && single(taken));
        // In all its solves, not in the typical one only.
        const double mean = time && known.mean_rate(set) > 0 ? problem.rows / known.mean_rate(set) : 0;
        const double due = known.due_in(set, std::isfinite(costs[set]) ? std::max(std::max(costs[set], mean) / costs[best] - 1, 0.0) : 1, rival, known.rate(best));
        quiet = std::min(quiet, due);
        if (due <= 0 && better(set, other)) other = set;
    }
    // What was timed after something else had solved is slower than it is in a row: cores have rested, a team of threads is made anew. So it solves twice, and the second time counts.
    if (const auto warming = static_cast<std::uint32_t>(rates.tally(known.warming_key())); taken && warming && warming <= all) return {warming, true};
    if (taken && other) return {other, true};
    // Of several, the typical solve and all of them together.
    const auto slower_in_all = [&](std::uint32_t set, std::uint32_t than) { return time && known.mean_rate(set) > 0 && known.mean_rate(set) < known.mean_rate(than); };
    const auto gains = [&](std::uint32_t set, std::uint32_t over) {
        if (single(set) || !single(over)) return costs[set] < (1 - worth_a_change) * costs[over];
        const double doubt = surely * std::hypot(known.error(set), known.error(over));
        return costs[set] < (1 - std::max(std::ldexp(worth_a_change, known.lost(set)), doubt)) * costs[over] && !slower_in_all(set, over);
    };
    if (!single(best) && best_single && !gains(best, best_single)) best = best_single;
    const bool stays = taken && taken <= all && known.seen(taken) > 0 && !gains(best, taken) && (single(taken) || !best_single || (costs[taken] <= costs[best_single] && !slower_in_all(taken, best_single)));
    if (!stays) return {best, false};
    return {taken, false, single(taken) ? std::max(static_cast<int>(std::ceil(quiet)) - 1, 0) : 0};
}

void remember(devices::Rates& rates, std::span<const SplitMember> members, const SplitChoice& chosen, const SplitProblem& problem, const SplitTime& time, std::span<const SplitWork> work) {
    members = members.first(std::min<std::size_t>(members.size(), devices::most_devices));
    if (chosen.members == 0 || members.size() < 2) return;
    const Knowledge known(rates, members, problem);
    const std::uint32_t set = chosen.members;
    const double seconds = time.steady_s > 0 ? time.steady_s : time.seconds;
    if (!(seconds > 0)) return;
    const auto taken = static_cast<std::uint32_t>(rates.of(known.taken_key()));
    const bool rested = chosen.learning && taken && set != taken && rates.tally(known.warming_key()) == 0 && !time.first && problem.rows < seconds * known.rate(taken) && seconds * known.rate(taken) < worth_a_second * problem.rows;
    rates.set_tally(known.warming_key(), rested ? static_cast<int>(set) : 0);
    if (rested) return;
    const auto count = static_cast<int>(time.before.size());
    if (time.first) rates.set_tally(known.beginning_key(set), 1);
    if (time.first && !(time.steady_s > 0)) {
        // Its buffers were made and its programs compiled by this one: no more is known than that it is not slower.
        rates.set(known.beginning_key(set), std::max(rates.of(known.beginning_key(set)), problem.rows / seconds));
        rates.set(known.beginnings_key(set), rates.of(known.beginnings_key(set)) + 1);
    } else {
        const int before = known.timed(set), sets = static_cast<int>(rates.of(known.sets_key()));
        if (before == 0 && !single(set) && set != known.all()) rates.set(known.sets_key(sets), set), rates.set(known.sets_key(), sets + 1);
        for (int k = std::max(0, count - samples); k < count; ++k) rates.set(known.total_key(set, (before + k) % samples), time.before[static_cast<std::size_t>(k)]);
        rates.set(known.total_key(set, (before + count) % samples), problem.rows / seconds);
        rates.set(known.seen_key(set), before + count + 1);
    }
    for (std::size_t k = 0; k < std::min(members.size(), work.size()); ++k) {
        if (!holds(set, k)) continue;
        if (!single(set)) rates.saw(known.own_key(set, k), work[k].rows / seconds);
        if (work[k].kernel_s > 0) rates.saw(known.kernels_key(k), work[k].rows / work[k].kernel_s);
    }
    const double solves = rates.of(known.solves_key()) + count + 1;
    rates.set(known.solves_key(), solves), rates.set(known.last_key(set), solves);
    if (const auto before = taken; !chosen.learning && before != set) {
        rates.set(known.taken_key(), set), rates.set(known.left_key(), before), rates.set(known.pause_key(), first_pause);
        if (before && before <= known.all() && !single(before) && single(set)) rates.set(known.lost_key(before), std::min(known.lost(before) + 1, most_lost)), rates.set(known.lost_at_key(before), solves);
    } else if (chosen.learning && rates.of(known.left_key()) == set) rates.set(known.pause_key(), std::min(2 * rates.of(known.pause_key()), most_pause));
}

}  // namespace trifold::tridiagonal
