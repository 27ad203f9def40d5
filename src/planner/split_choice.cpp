// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "planner/split_known.hpp"
#include "trifold/error.hpp"

namespace trifold::tridiagonal {
namespace {

// One that did less of the work beside the others than this would have to become so many times faster alone; to see that it does not would cost as much.
constexpr double least_share = 1.0 / 8;

// A device that others slow down is, where we have seen it, up to twice as fast alone; one that takes a system whole need not solve it in two passes over its link.
constexpr double alone_at_most = 2.2, whole_at_most = 3;

// One that was never seen alone, and would be the fastest if it became so much faster, is tried after so many solves.
constexpr double tried_after = 8;

// Several devices are taken where they gain so much over the best single one, and what is taken changes where the other gains so much.
constexpr double worth_a_change = 0.02;

// What was never seen is tried where it is thought to cost no more than `worth_a_look` of the best and would gain if nobody slowed anybody down: not before what was seen has been made use of.
constexpr double worth_a_look = 1.5, looks_after = 3, first_pause = 4, quiet_at_most = 1 << 20;

// Between two trials of a set: as many solves as passed since the taken one was taken (so that there are a few in many solves), these at least, and what they cost: of the best single device
// against the best several, between which it is decided, a tenth of the time until both were judged, of others three per cent, one per cent later. The first one of such a pair at once.
constexpr double first_trial = 3, least_between = 6, most_between = 256;
constexpr double rival_overhead = 0.1, look_overhead = 0.03, most_overhead = 0.01;

// Several have to gain more than so many errors of what trials say of it: to be taken, by two trials or by more; and to stay, by one, two or more.
constexpr double surely_of_two = 3, surely = 2, stays_surely[] = {0, 0, 0.5, 1};

// One in place of another, or several of several.
constexpr double probably = 1.5;

// Rows per second that a device may have alone, by what it does beside the others.
double at_most(const Knowledge& known, std::size_t k) { return (known.problem().coupled && known.member(k).linked ? whole_at_most : alone_at_most) * known.own(known.all(), k); }

// After how many solves `set`, which costs so much more than what is taken, may be timed. rival: it is decided between it and that.
double due_in(const Knowledge& known, std::uint32_t set, std::uint32_t taken, double more, bool rival, double best_rate) {
    const double last = known.of(known.last_key(set)), begun = known.of(known.beginnings_key(set));
    double wait, since = last;
    if (known.seen(set) < 1) {
        // The first time of a set may have compiled programs that are kept: what that cost says nothing of the next one's.
        wait = std::max(looks_after, more / look_overhead);
        if (known.problem().objective == Objective::time && single(set) && at_most(known, static_cast<std::size_t>(std::countr_zero(set))) > best_rate) wait = std::min(wait, tried_after);
    } else if (known.timed(set) == 0 && begun < judged_by) {
        wait = first_pause * begun;
    } else {
        const int trials = known.beside(set, taken).trials;
        const double taken_at = known.of(known.taken_at_key());
        since = std::max(last, taken_at);
        const double then = known.of(known.then_key(set)), solves = more > far_slower - 1 ? 1 : more > slower - 1 ? 2 : least_run;
        const bool at_once = trials == 0 && rival, another = then > 0 && std::abs(std::log(known.recent(taken, counted_of_taken) / then)) > moved;
        wait = at_once ? first_trial : another ? least_between : std::clamp(last - taken_at, least_between, most_between);
        if (!at_once || more > far_slower - 1) wait = std::max(wait, solves * more / (trials >= judged_by ? most_overhead : rival ? rival_overhead : look_overhead));
    }
    return wait - (known.of(known.solves_key()) - since);
}

// Whether `set`, which gains so much over what is taken (a logarithm), takes its place.
bool replaces(const Knowledge& known, std::uint32_t set, std::uint32_t taken, double gain) {
    if (known.problem().objective != Objective::time) return gain > worth_a_change;
    const Beside beside = known.beside(set, taken);
    const int trials = beside.trials;
    const bool joins = single(taken) && !single(set), leaves = !single(taken) && single(set);
    if (trials == 0 && (known.timed(set) < judged_by || known.timed(taken) < judged_by)) return leaves ? gain > 0 : !joins && gain > worth_a_change;
    const double error = trials > 0 ? beside.error : deviation_of_median * std::hypot(known.scatter(set), known.scatter(taken)) / std::sqrt(samples);
    // Several in all their solves, not in the typical one only.
    const double tails = std::max(std::log(joins ? known.tail(set) / known.tail(taken) : known.tail(taken) / known.tail(set)), 0.0);
    if (leaves) return -gain <= std::max(stays_surely[std::min(trials, judged_by)] * error, tails);
    if (joins) return trials != 1 && gain > std::max({worth_a_change, (trials == 2 ? surely_of_two : surely) * error, tails});
    return gain > std::max(worth_a_change, probably * error);
}

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
        if (known.seen(1u << k) < 1 && at_most(known, k) >= known.rate(all)) return {1u << k, true};

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
    if (taken == 0 || taken > all || known.seen(taken) < 1) {
        const bool several = !single(best) && (!best_single || costs[best] < (1 - worth_a_change) * costs[best_single]);
        return {several || !best_single ? best : best_single, false};
    }
    if (const auto on_trial = static_cast<std::uint32_t>(rates.tally(known.trial_key())); on_trial && on_trial <= all) return {on_trial, true};
    std::uint32_t other = 0, faster = 0;
    double quiet = quiet_at_most, other_gain = 0, most_gain = 0;
    for (const std::uint32_t set : known.candidates(best)) {
        if (costs.find(set) == costs.end()) costs[set] = known.cost(set);
        if (set == taken || (known.seen(set) < 1 && !promising(set))) continue;
        // How much less than what is taken, as a logarithm: by trials, else by what each has taken.
        const Beside beside = time ? known.beside(set, taken) : Beside{};
        const double gain = beside.trials > 0 ? beside.gain : std::isfinite(costs[set]) ? std::log(costs[taken] / costs[set]) : -1;
        if (known.seen(set) > 0 && replaces(known, set, taken, gain) && (faster == 0 || gain > most_gain)) faster = set, most_gain = gain;
        const bool rival = single(set) != single(taken) && (single(set) ? set == best_single : set == best_several);
        const double due = due_in(known, set, taken, std::max(std::expm1(-gain), 0.0), rival, known.rate(best));
        quiet = std::min(quiet, due);
        if (due <= 0 && (other == 0 || gain > other_gain)) other = set, other_gain = gain;
    }
    if (faster) return {faster, false};
    if (other) return {other, true};
    return {taken, false, single(taken) ? std::max(static_cast<int>(std::ceil(quiet)) - 1, 0) : 0};
}

}  // namespace trifold::tridiagonal
