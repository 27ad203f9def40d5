// SPDX-License-Identifier: BSD-3-Clause
// What is known of the sets of devices for one kind of system: numbers by name (devices/rates.hpp), and what they say.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "devices/contention.hpp"
#include "planner/split_choice.hpp"

namespace trifold::tridiagonal {

// What a set takes is the median of its last solves: a machine has fast and slow moments, and one lucky solve says as little as one that was disturbed.
inline constexpr int samples = 9;

// What is said of fewer solves is not relied upon.
inline constexpr int judged_by = 3;

// The deviation of one solve, by the median deviation (normal noise). A median's is so much of it, over the root of their number, that of `shift` so much.
inline constexpr double deviation = 1.4826, deviation_of_median = 1.2533, deviation_of_shift = 1.05;

// A trial is so many solves in a row at least. All but so many first ones count, at least so many last ones, and of the taken set before it.
inline constexpr int least_run = 4, first_ones = 3, counted = 3, counted_of_taken = 6;

// Where both take about as long, which costs little, a trial is longer: what follows another set's solve becomes faster for a while.
inline constexpr double close = 0.1;
inline constexpr int close_run = 8;

// A trial ends at once where the first solve takes so many times as long as what is taken, after two where both take longer than that, later where all do.
inline constexpr double far_slower = 1.5, slower = 1.25, surely_slower = 1.15;

// The taken set takes so much more or less time than at a trial, or a trial says so much else than those before: the machine is another one.
inline constexpr double moved = 0.15;

// A solve that takes so much longer than a typical one is no noise: something disturbed it, or the set is like that at times. Most of them take about so much longer, and count as that much at most. About so many last solves say how often.
inline constexpr double longer = 0.4, mostly_longer = 2, longest_counted = 4, excess_of = 64;

// What disturbs a solve makes it so many times longer at most, mostly: what one solve alone says is not believed beyond that.
inline constexpr double disturbed = 3;

inline bool holds(std::uint32_t set, std::size_t k) { return set >> k & 1; }
inline bool single(std::uint32_t set) { return std::popcount(set) == 1; }

/// Of two sets, by trials of one of them in place of the other.
struct Beside {
    int trials = 0;
    double gain = 0, error = 0;  ///< logarithm of how many times as fast the first one is; and what that is wrong by
};

inline double median(std::vector<double>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// Of the values about `middle`, as of normal noise.
inline double deviation_about(double middle, std::vector<double> values) {
    for (double& value : values) value = std::abs(value - middle);
    return deviation * median(values);
}

/// How far apart typical values are: the median of all differences, nearly as sure as that of means where noise is normal, and one value in four may be anything.
inline double shift(const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> all;
    for (const double one : a)
        for (const double other : b) all.push_back(one - other);
    std::sort(all.begin(), all.end());
    return (all[(all.size() - 1) / 2] + all[all.size() / 2]) / 2;
}

class Knowledge {
public:
    Knowledge(const devices::Rates& rates, std::span<const SplitMember> members, const SplitProblem& problem)
        : rates_(rates), members_(members), problem_(problem), all_(static_cast<std::uint32_t>((std::uint64_t{1} << members.size()) - 1)), kind_(problem.kind()), of_all_(" of " + names_of(members, all_) + kind_) {}

    std::uint32_t all() const { return all_; }
    std::string total_key(std::uint32_t set, int sample) const { return "took " + of(set).name + " #" + std::to_string(sample); }
    std::string seen_key(std::uint32_t set) const { return "timed " + of(set).name; }
    std::string excess_key(std::uint32_t set) const { return "excess " + of(set).name; }
    std::string beginning_key(std::uint32_t set) const { return "began " + of(set).name; }
    std::string beginnings_key(std::uint32_t set) const { return "beginnings " + of(set).name; }
    std::string own_key(std::uint32_t set, std::size_t k) const { return "share " + members_[k].name + " of " + of(set).name; }
    std::string kernels_key(std::size_t k) const { return "kernels " + members_[k].name + kind_; }
    std::string taken_key() const { return "taken" + of_all_ + " " + name_of(problem_.objective); }
    std::string taken_at_key() const { return taken_key() + " at"; }
    std::string trial_key() const { return "trial" + of_all_ + " " + name_of(problem_.objective); }
    std::string run_key() const { return "run" + of_all_; }
    std::string ran_key() const { return "ran" + of_all_; }
    std::string least_key() const { return "least" + of_all_; }
    std::string sum_key() const { return "sum" + of_all_; }
    std::string spent_key() const { return "spent" + of_all_; }
    std::string begun_key() const { return "begun" + of_all_; }
    std::string after_key() const { return "after" + of_all_; }
    std::string then_key(std::uint32_t set) const { return "then " + of(set).name; }
    std::string tried_key(std::uint32_t set) const { return "tried " + names_of(members_, set) + of_all_; }
    std::string beside_key(std::uint32_t a, std::uint32_t b) const { return "beside " + of(std::min(a, b)).name + " | " + names_of(members_, std::max(a, b)); }
    std::string solves_key() const { return "solves" + of_all_; }
    std::string last_key(std::uint32_t set) const { return "last " + names_of(members_, set) + of_all_; }
    std::string sets_key() const { return "sets" + of_all_; }
    std::string sets_key(int number) const { return sets_key() + " #" + std::to_string(number); }

    double of(const std::string& key) const { return rates_.of(key); }
    const SplitProblem& problem() const { return problem_; }
    std::size_t members() const { return members_.size(); }
    const SplitMember& member(std::size_t k) const { return members_[k]; }

    int timed(std::uint32_t set) const { return of(set).timed; }
    int seen(std::uint32_t set) const { return of(set).seen; }
    bool begun(std::uint32_t set) const { return rates_.of(beginnings_key(set)) > 0; }
    double rate(std::uint32_t set) const { return of(set).rate; }

    /// Of one solve, relative; 0 where too little was seen to tell.
    double scatter(std::uint32_t set) const { return of(set).scatter; }

    /// What a typical solve and those that take far longer come to, over typical ones alone, less one; and what that is wrong by.
    double excess(std::uint32_t set) const { return timed(set) > 0 ? rates_.of(excess_key(set)) / std::min<double>(timed(set), excess_of) : 0; }
    double excess_error(std::uint32_t set) const { return timed(set) > 0 ? std::sqrt(mostly_longer * rates_.of(excess_key(set))) / std::min<double>(timed(set), excess_of) : 0; }

    /// Rows per second, the median of the last solves, so many.
    double recent(std::uint32_t set, int solves) const {
        const int count = std::min(timed(set), std::min(solves, samples));
        if (count == 0) return rate(set);
        std::vector<double> last;
        for (int k = 1; k <= count; ++k) last.push_back(rates_.of(total_key(set, (timed(set) - k) % samples)));
        return median(last);
    }

    /// Logarithms of what its last solves did.
    std::vector<double> last(std::uint32_t set, int solves) const {
        std::vector<double> logs;
        for (int k = 1; k <= std::min(timed(set), std::min(solves, samples)); ++k) logs.push_back(std::log(rates_.of(total_key(set, (timed(set) - k) % samples))));
        if (logs.empty()) logs.push_back(std::log(rate(set)));
        return logs;
    }

    /// The taken set takes far more or less than at the last trial of this one.
    bool moved_since(std::uint32_t set, std::uint32_t taken) const {
        const double then = rates_.of(then_key(set));
        return then > 0 && std::abs(std::log(recent(taken, counted_of_taken) / then)) > moved;
    }

    /// By trials of one of them in place of the other.
    Beside beside(std::uint32_t set, std::uint32_t other) const {
        const std::string key = beside_key(set, other);
        Beside out{static_cast<int>(rates_.of(key)), 0, 0};
        if (out.trials > 0) out.gain = (set < other ? 1 : -1) * std::log(rates_.of(key + " times")), out.error = rates_.of(key + " error");
        return out;
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
        SplitEstimate out{not_known, not_known, seen(set)};
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
            out.joules += members_[k].watts > 0 ? members_[k].watts * (members_[k].linked && kernels > 0 ? rows_per_s[k] * out.seconds / kernels : out.seconds) : not_known;
        }
        return out;
    }

    /// In what is to be least.
    double cost(std::uint32_t set) const {
        const SplitEstimate one = estimate(set);
        const double value = problem_.objective == Objective::time ? one.seconds : problem_.objective == Objective::energy ? one.joules : one.joules * one.seconds;
        return value == value ? value : std::numeric_limits<double>::infinity();
    }

private:
    static constexpr double not_known = std::numeric_limits<double>::quiet_NaN();

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
        double rate = 0, scatter = 0;
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
        if (count > 0) {
            one.rate = median(known);
            if (count >= judged_by) one.scatter = deviation_about(one.rate, known) / one.rate;
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

}  // namespace trifold::tridiagonal
