// SPDX-License-Identifier: BSD-3-Clause
// What is learnt of a solve by some of several devices. A set other than the one that is taken is timed by a *trial*: it solves some times in a row in place of it, and all but the first of these are compared with the last ones of the taken set before.
#include <algorithm>
#include <cmath>

#include "planner/split_known.hpp"

namespace trifold::tridiagonal {
namespace {

// So many solves in a row, more where the last one was still faster than those before: what follows another set's solve is slower than in a row, since cores have rested, a team of threads is made anew, caches hold other rows.
// One device's in place of several take two more: whoever leaves several in time loses nothing.
constexpr int more_of_one = 2, longest_run = 3 * least_run;
constexpr double still_faster = 0.02;

// After a trial so many solves of the taken set do not count, for the same reason.
constexpr int resumes = 3;

// What the last trials said counts, by their typical value: one of them may have been disturbed.
constexpr int trials_kept = 8;

// What a trial makes slower after it, of which the first solve shows a part; beyond that it was disturbed by something else.
constexpr double all_after = 3, most_after = 0.4;

// The first solves make buffers, or wait for a compiler: more than so many solves of the taken set are not held against what comes later.
constexpr double most_begun = 2;

// A trial says something else where it differs from those before by so many errors; where the taken set takes far more or less than at the last one, by so many.
constexpr double surely_else = 3, probably_else = 1;

// A trial has ended: what it says of `set` beside the taken one.
void judge(devices::Rates& rates, const Knowledge& known, std::uint32_t set, std::uint32_t taken, double gain, int solves) {
    const std::string key = known.beside_key(set, taken);
    int before = static_cast<int>(rates.of(key));
    const double times = std::exp(set < taken ? gain : -gain), thought = rates.of(key + " times");
    const double of_solves = deviation_of_shift * std::hypot(known.scatter(set) / std::sqrt(solves), known.scatter(taken) / std::sqrt(counted_of_taken));
    // It says something else than those before: the machine is another one.
    if (before > 0 && std::abs(std::log(times / thought)) > std::max(moved, (known.moved_since(set, taken) ? probably_else : surely_else) * of_solves)) before = 0, rates.set(known.taken_at_key(), rates.of(known.solves_key()));
    rates.set(key + " #" + std::to_string(before % trials_kept), times);
    std::vector<double> all;
    for (int k = 0; k < std::min(before + 1, trials_kept); ++k) all.push_back(std::log(rates.of(key + " #" + std::to_string(k))));
    std::vector<double> others;
    for (const double one : all) others.push_back(-one);
    const double count = static_cast<double>(all.size()), middle = shift(all, others) / 2;
    const double seen = deviation_of_median * deviation_about(middle, all);
    rates.set(key, before + 1), rates.set(key + " times", std::exp(middle)), rates.set(key + " error", std::max(seen, of_solves) / std::sqrt(count));
    rates.set(known.then_key(set), known.recent(taken, counted_of_taken)), rates.set(known.tried_key(set), rates.of(known.solves_key()));
}

// One more solve of a trial, as many times as long as the taken set takes.
void try_on(devices::Rates& rates, const Knowledge& known, std::uint32_t set, std::uint32_t taken, double as_taken, bool first) {
    const int row = rates.tally(known.run_key());
    const double scale = 1e6, best = row > 1 ? rates.tally(known.least_key()) / scale : 1e3, least = std::min(best, as_taken);
    // Of a set that was about as fast before, one solve says that it was disturbed.
    const Beside before = known.beside(set, taken);
    const bool as_fast = (before.trials > 0 ? before.gain : std::log(known.rate(set) / known.recent(taken, counted_of_taken))) > -close;
    const bool far = !first && (row > 1 || !as_fast) && least > (row == 1 ? far_slower : row == 2 ? slower : surely_slower);
    const int solves = std::max(counted, row - first_ones);
    const double gain = shift(known.last(set, solves), known.last(taken, counted_of_taken));
    const int least_solves = (gain > -close ? close_run : least_run) + (single(set) && !single(taken) ? more_of_one : 0);
    // One solve that takes far longer than those before did may have been disturbed.
    const double verdict = far ? std::max(-std::log(as_taken), row == 1 ? std::min(gain, -std::log(disturbed)) : -std::log(disturbed * least)) : gain;
    const double more = far ? std::expm1(-verdict) : std::min(as_taken, disturbed) - 1;
    const double sum = (row > 1 ? rates.tally(known.sum_key()) / scale : 0) + std::min(more, first ? most_begun : 1e3);
    const bool ends = far || row >= longest_run || (row >= least_solves && as_taken > (1 - still_faster) * best);
    rates.set_tally(known.trial_key(), ends ? 0 : static_cast<int>(set));
    rates.set_tally(known.least_key(), static_cast<int>(scale * std::min(least, 1e3)));
    rates.set_tally(known.sum_key(), static_cast<int>(scale * std::clamp(sum, -1e3, 1e3)));
    if (!ends) return;
    rates.set(known.spent_key(), rates.of(known.spent_key()) + std::max(sum, 0.0));
    judge(rates, known, set, taken, verdict, solves);
}

}  // namespace

void remember(devices::Rates& rates, std::span<const SplitMember> members, const SplitChoice& chosen, const SplitProblem& problem, const SplitTime& time, std::span<const SplitWork> work) {
    members = members.first(std::min<std::size_t>(members.size(), devices::most_devices));
    if (chosen.members == 0 || members.size() < 2) return;
    const Knowledge known(rates, members, problem);
    const std::uint32_t set = chosen.members;
    const double seconds = time.steady_s > 0 ? time.steady_s : time.seconds;
    if (!(seconds > 0)) return;
    const auto taken = static_cast<std::uint32_t>(rates.of(known.taken_key()));
    const bool on_trial = chosen.learning && taken && taken <= known.all() && set != taken;
    const auto count = static_cast<int>(time.before.size());
    // How many it has solved in a row before these. What a process begins with is all that one that solves once has.
    const auto last = static_cast<std::uint32_t>(rates.tally(known.ran_key()));
    int row = last == set && !(on_trial && rates.tally(known.trial_key()) == 0) ? rates.tally(known.run_key()) : last == 0 && !on_trial ? resumes : 0;
    rates.set_tally(known.ran_key(), static_cast<int>(set)), rates.set_tally(known.run_key(), row + count + 1);
    const double as_taken = taken && (on_trial || set == taken) ? seconds * known.recent(taken, counted_of_taken) / problem.rows : 1;
    // What comes of a trial in the solves after it is its cost too: of the first one so much more, of the next ones less and less.
    if (taken && !on_trial && last && last != set && count == 0) {
        const double after = all_after * std::clamp(as_taken - 1, 0.0, most_after), before = rates.of(known.after_key());
        rates.set(known.after_key(), before > 0 ? (before + after) / 2 : after), rates.set(known.spent_key(), rates.of(known.spent_key()) + after);
    }
    if (time.first) rates.set_tally(known.beginning_key(set), 1);
    if (time.first && !(time.steady_s > 0)) {
        // Its buffers were made and its programs compiled by this one: no more is known than that it is not slower.
        rates.set(known.beginning_key(set), std::max(rates.of(known.beginning_key(set)), problem.rows / seconds));
        rates.set(known.beginnings_key(set), rates.of(known.beginnings_key(set)) + 1);
    } else {
        int timed = known.timed(set);
        const int sets = static_cast<int>(rates.of(known.sets_key()));
        if (timed == 0 && !single(set) && set != known.all()) rates.set(known.sets_key(sets), set), rates.set(known.sets_key(), sets + 1);
        double excess = rates.of(known.excess_key(set));
        for (int k = 0; k <= count; ++k) {
            // What follows another set's solve is slower than in a row.
            const bool counts = timed == 0 || !taken || (on_trial ? ++row > 1 || as_taken < 1 || as_taken > far_slower || time.first : ++row > resumes);
            if (!counts) continue;
            const double rate = k < count ? time.before[static_cast<std::size_t>(k)] : problem.rows / seconds, more = timed < judged_by ? 0 : known.rate(set) / rate - 1;
            excess = (timed < excess_of ? 1 : 1 - 1 / excess_of) * excess + (more > longer ? std::min(more, longest_counted) : 0);
            rates.set(known.total_key(set, timed++ % samples), rate);
        }
        if (excess > 0) rates.set(known.excess_key(set), excess);
        rates.set(known.seen_key(set), timed);
    }
    for (std::size_t k = 0; k < std::min(members.size(), work.size()); ++k) {
        if (!holds(set, k)) continue;
        if (!single(set)) rates.saw(known.own_key(set, k), work[k].rows / seconds);
        if (work[k].kernel_s > 0) rates.saw(known.kernels_key(k), work[k].rows / work[k].kernel_s);
    }
    const double solves = rates.of(known.solves_key()) + count + 1;
    rates.set(known.solves_key(), solves), rates.set(known.last_key(set), solves);
    const double begun = rates.of(known.begun_key());
    if (!taken) rates.set(known.begun_key(), begun + time.seconds);
    if (on_trial) try_on(rates, Knowledge(rates, members, problem), set, taken, as_taken, time.first);
    else if (!chosen.learning && taken != set) {
        if (!taken) rates.set(known.spent_key(), std::clamp(begun * known.rate(set) / problem.rows - solves + 1, 0.0, most_begun));
        rates.set(known.taken_key(), set), rates.set(known.taken_at_key(), solves);
    }
}

}  // namespace trifold::tridiagonal
