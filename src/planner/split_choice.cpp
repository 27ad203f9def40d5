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

// Several devices are taken where they gain so much over the best single one, and what is taken changes where the other gains so much. Before there is a trial they have to gain what a solve may take longer after another
// set's (cores have rested, caches hold other rows), which is all that one solve of each would show; later a tenth of that, since trials are wrong by some of it.
constexpr double worth_a_change = 0.02, after_another_s = 1.5e-3, left_of_that = 0.1;

// What was never seen is tried where it is thought to cost no more than `worth_a_look` of the best and would gain if nobody slowed anybody down: not before what was seen has been made use of. A device that is tried alone
// is thought to be so many times as fast as beside the others, or as many times as another one was.
constexpr double worth_a_look = 1.5, looks_after = 3, seldom_looks = 64, first_pause = 4, thought_alone = 1.5, quiet_at_most = 1 << 20;

// Between two trials of a set: as many solves as passed since the taken one was taken, so that there are a few in many solves, and so many at least and at most; four times that where it is not decided between it and the
// taken one. The first one at once of one device in place of another, soon of one in place of several or the other way round, and the second one where several gained by it: as soon as there are solves of the taken set to compare it with.
constexpr double at_once = 4, soon = 6, again = 8, least_between = 10, most_between = 256, of_others = 4;

// What all trials may have cost, the first solves included, in solves of the taken set: so many, and a share of all solves. Sets between which it is not decided may use a quarter of what is left of that.
constexpr double allowed = 1.5, allowed_share = 0.02, allowed_others = 0.25;

// Several have to gain more than so many errors of what trials say of it: to be taken, by two trials or by more; and to stay, by one, two or more.
constexpr double surely_of_two = 3, surely = 2, stays_surely[] = {0, 0, 0.5, 1};

// One in place of another, or several of several.
constexpr double probably = 1.5;

// Rows per second that a device may have alone, by what it does beside the others.
double at_most(const Knowledge& known, std::size_t k) { return (known.problem().coupled && known.member(k).linked ? whole_at_most : alone_at_most) * known.own(known.all(), k); }

// After how many solves `set`, which gains so much over what is taken (a logarithm), may be timed. rival: it is decided between it and that.
double due_in(const Knowledge& known, std::uint32_t set, std::uint32_t taken, double gain, bool rival) {
    const double last = known.of(known.last_key(set)), begun = known.of(known.beginnings_key(set)), solves = known.of(known.solves_key()), taken_at = known.of(known.taken_at_key());
    const double more = std::expm1(-gain);
    rival = rival || gain > worth_a_change;
    double wait, since = std::max(last, taken_at), costs = more;
    if (known.seen(set) < 1) {
        wait = rival || !single(set) ? looks_after : seldom_looks, since = last, rival = rival || single(set);
    } else if (known.timed(set) == 0 && begun < judged_by) {
        // The first time of a set may have compiled programs that are kept: what that cost says nothing of the next one's.
        wait = first_pause * begun, since = last, costs = 0;
    } else if (known.timed(set) == 1 && single(set) && more < disturbed - 1 && !(known.own(known.all(), static_cast<std::size_t>(std::countr_zero(set))) > 0)) {
        // Nothing else is known of it, and that one solve may have been disturbed.
        wait = seldom_looks, since = last, costs = 0;
    } else {
        const int trials = known.beside(set, taken).trials;
        rival = rival || (trials < judged_by && more < (trials == 0 ? worth_a_look - 1 : close));
        wait = rival && trials == 0 ? single(set) == single(taken) ? at_once : soon : rival && trials == 1 && gain > worth_a_change ? again : known.moved_since(set, taken) ? least_between : std::clamp(last - taken_at, least_between, most_between) * (rival ? 1 : of_others);
        costs = more * (more > far_slower - 1 ? 1 : more > slower - 1 ? 2 : more > close ? least_run : close_run) + known.of(known.after_key());
    }
    const double left = std::max(allowed + allowed_share * solves - known.of(known.spent_key()), 0.0) * (rival ? 1 : allowed_others);
    return std::max(wait - (solves - since), costs > left ? (costs - left) / allowed_share : 0.0);
}

// What several have to gain; `of_that`: so much of what a solve after another set's takes longer may be in what is known.
double worth_joining(const Knowledge& known, std::uint32_t set, double of_that) { return std::max(worth_a_change, of_that * after_another_s * known.rate(set) / known.problem().rows); }

// How many times as fast as beside the others a device is thought to be alone.
double alone(const Knowledge& known) {
    double times = thought_alone;
    for (std::size_t k = 0; k < known.members(); ++k)
        if (const double beside = known.own(known.all(), k); known.seen(1u << k) > 0 && beside > 0) times = std::max(times, known.rate(1u << k) / beside);
    return std::min(times, static_cast<double>(whole_at_most));
}

// How many times as fast as it is known to be one device may be: one that was never seen alone, or looked at when it was disturbed, so that it was slower than beside the others.
double hope(const Knowledge& known, std::uint32_t set) {
    if (known.seen(set) < 1) return alone(known);
    return std::max(known.own(known.all(), static_cast<std::size_t>(std::countr_zero(set))) / known.rate(set), 1.0);
}

// By how much more than one device several are slowed down by solves that take far longer, as far as that is sure.
double tails(const Knowledge& known, std::uint32_t several, std::uint32_t one) {
    return std::max(known.excess(several) - known.excess(one) - std::hypot(known.excess_error(several), known.excess_error(one)), 0.0);
}

// Whether `set`, which gains so much over what is taken (a logarithm) by trials, and by what each has taken, takes its place.
bool replaces(const Knowledge& known, std::uint32_t set, std::uint32_t taken, double gain, double thought) {
    if (known.problem().objective != Objective::time) return gain > worth_a_change;
    const Beside beside = known.beside(set, taken);
    const int trials = beside.trials;
    const bool joins = single(taken) && !single(set), leaves = !single(taken) && single(set);
    if (trials == 0 && (known.timed(set) < judged_by || known.timed(taken) < judged_by)) return leaves && gain > 0;
    // Only by a trial since the taken set was taken: else three sets may each seem faster than the one before, for ever.
    if (known.of(known.tried_key(set)) < known.of(known.taken_at_key())) return false;
    const double error = trials > 0 ? beside.error : deviation_of_median * std::hypot(known.scatter(set), known.scatter(taken)) / std::sqrt(samples);
    // Several in all their solves, not in the typical one only.
    if (leaves) return -gain <= std::max(stays_surely[std::min(trials, judged_by)] * error, tails(known, taken, set));
    // The taken set was disturbed before a trial: by its last solves, of which most were not, it is the faster one.
    if (!(thought > 0)) return false;
    if (joins) return trials != 1 && gain > std::max({worth_joining(known, set, left_of_that), (trials == 2 ? surely_of_two : surely) * error, tails(known, set, taken)});
    return gain > std::max(worth_a_change, (single(set) ? 1 : probably) * error);
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
    // Where all of them could not end a solve, nothing is known of what each of them can do.
    bool ended = false;
    for (std::size_t k = 0; k < members.size(); ++k) ended = ended || known.own(all, k) > 0;
    const bool refused = !ended && (known.seen(all) > 0 || known.begun(all));
    if (known.seen(all) < 1 && !refused) return {all, true};
    // Then alone who did most of it, and who would be as fast as all of them if it became so many times faster alone. Everybody where that is not known, and for joules, since they differ far more.
    const bool time = problem.objective == Objective::time;
    std::size_t first = 0;
    for (std::size_t k = 0; k < members.size(); ++k) {
        if ((!time || refused) && known.seen(1u << k) < 1) return {1u << k, true};
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
        const bool several = !single(best) && (!best_single || costs[best] * (1 + (time ? worth_joining(known, best, 1) : worth_a_change)) < costs[best_single]);
        return {several || !best_single ? best : best_single, false};
    }
    if (const auto on_trial = static_cast<std::uint32_t>(rates.tally(known.trial_key())); on_trial && on_trial <= all) return {on_trial, true};
    bool other_machine = false;
    for (const auto& [set, cost] : costs) other_machine = other_machine || known.moved_since(set, taken);
    std::uint32_t other = 0, faster = 0;
    double quiet = quiet_at_most, other_gain = 0, most_gain = 0;
    for (const std::uint32_t set : known.candidates(best)) {
        if (costs.find(set) == costs.end()) costs[set] = known.cost(set);
        if (set == taken || (known.seen(set) < 1 && !promising(set))) continue;
        // How much less than what is taken, as a logarithm: by trials, else by what each has taken.
        const Beside beside = time ? known.beside(set, taken) : Beside{};
        const double thought = std::isfinite(costs[set]) ? std::log(costs[taken] / costs[set]) : -1;
        const double gain = beside.trials > 0 ? beside.gain : thought;
        if (known.seen(set) > 0 && replaces(known, set, taken, gain, thought) && (faster == 0 || gain > most_gain)) faster = set, most_gain = gain;
        const bool rival = (single(set) != single(taken) && (single(set) ? set == best_single : set == best_several)) ||
                           (known.seen(set) < 1 && single(set) && (other_machine || at_most(known, static_cast<std::size_t>(std::countr_zero(set))) > known.rate(taken)));
        const double hoped = beside.trials > 0 && !known.moved_since(set, taken) ? gain : std::max(gain, thought + (time && single(set) && known.timed(set) < judged_by ? std::log(hope(known, set)) : 0));
        const double due = due_in(known, set, taken, time && single(set) && !single(taken) ? hoped + tails(known, taken, set) : hoped, rival);
        quiet = std::min(quiet, due);
        if (due <= 0 && (other == 0 || gain > other_gain)) other = set, other_gain = gain;
    }
    if (faster) return {faster, false};
    if (other) return {other, true};
    return {taken, false, single(taken) ? std::max(static_cast<int>(std::ceil(quiet)) - 1, 0) : 0};
}

}  // namespace trifold::tridiagonal
