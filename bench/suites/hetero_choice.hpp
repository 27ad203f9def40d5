// SPDX-License-Identifier: BSD-3-Clause
// What the planner chooses of a set of devices beside the best of them alone. First what learning costs: the set's first solves of a kind of system, in a row. Then what it takes once it has learnt, in turns; the best device
// twice a round, since what differs between its two times is the machine's. What is timed follows a solve by the same devices, as in a program that solves again and again. Trials go on in a row, with the solves that follow
// them, and are accounted for by themselves. Rounds go on until it is settled whether the set is slower, or the time is over.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/harness/paired.hpp"
#include "bench/harness/record.hpp"
#include "bench/suites/hetero_budget.hpp"
#include "bench/suites/hetero_series.hpp"
#include "bench/suites/hetero_sets.hpp"
#include "trifold/dtype.hpp"

namespace trifold::bench {

class Choice {
public:
    Choice(const Given& given, DType dtype, std::int64_t rows, int threads, const Budget& budget) : given_(given), dtype_(dtype), rows_(rows), threads_(threads), budget_(budget) {}

    void add(Series one, bool single) {
        all_.push_back(std::move(one));
        singles_ += single;
    }

    /// solve: seconds of one solve.
    void race(const std::function<double(Series&)>& solve, Record& record) {
        again_.resize(singles_);
        for (std::size_t k = 0; k < singles_; ++k)
            for (int n = 0; n < warm_solves; ++n) all_[k].learning.push_back(solve(all_[k]));
        const double given = budget_.given() * of_learning / static_cast<double>(std::max<std::size_t>(all_.size() - singles_, 1));
        for (std::size_t k = singles_; k < all_.size(); ++k) {
            Series& set = all_[k];
            double took = 0;
            Series& single = *std::min_element(all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(singles_), [&](const Series& a, const Series& b) { return least_of(a, set) < least_of(b, set); });
            for (int n = 0; n < learning_solves && (n < least_learning || took < given); ++n) {
                took += set.learning.emplace_back(solve(set)), set.learning_trials += on_trial(set);
                // Beside the best device of then, since machines have slow and fast spells; not in the middle of a trial.
                if (set.learning.size() / look_beside <= set.beside.size() / 2 || on_trial(set)) continue;
                for (int k = 0; k < 3; ++k) solve(single);
                for (int k = 0; k < 2; ++k) took += set.beside.emplace_back(solve(single));
            }
            // A trial is not left in the middle.
            for (int n = 0; on_trial(set) && n < learning_solves; ++n) set.learning.push_back(solve(set)), set.learning_trials += 1;
        }
        for (std::size_t k = 0; k < all_.size(); ++k) {
            if (k < singles_ && !may_be_best(k)) continue;
            turns_.emplace_back(&all_[k], &all_[k].times);
            if (k < singles_) turns_.emplace_back(&all_[k], &again_[k]);
        }
        std::mt19937 random(1);
        for (int round = 1, look = 16; round <= most_rounds; ++round) {
            std::shuffle(turns_.begin(), turns_.end(), random);
            for (const auto& [one, times] : turns_) {
                follow(*one, solve);
                times->push_back(settled(*one, solve, most_trials));
                before_ = chosen(one->report), ++one->who[before_];
            }
            if (round >= least_rounds && budget_.left() < 0) break;
            if (round < look) continue;
            look *= 2;
            bool open = false;
            for (std::size_t k = singles_; k < all_.size(); ++k)
                if (const std::size_t single = best_of(k); single < singles_) open = open || std::string_view(verdict(ratio(all_[single].times, all_[k].times), margin)) == "open";
            if (!open) break;
            drop_slow_singles();
        }
        for (std::size_t k = singles_; k < all_.size(); ++k)
            if (const std::size_t single = best_of(k); single < singles_) put(all_[k], all_[single], again_[single], record);
    }

private:
    // As the planner's own: several devices are taken where they gain so much.
    static constexpr double margin = 0.02;
    // A verdict is asked for after 16 rounds, 32, … 512: six times.
    static constexpr double beyond = 0.025 / 6;
    static constexpr int least_rounds = 9, most_rounds = 512;
    // Half of the time, where there is too little for all.
    static constexpr int learning_solves = 100, least_learning = 16, warm_solves = 4;
    static constexpr std::size_t look_beside = 16;
    static constexpr double of_learning = 0.4;
    static constexpr int most_trials = 8;
    // A single device that is so many times slower than the best one while it learns does not become it.
    static constexpr double never_the_best = 1.5;

    static Paired ratio(const std::vector<double>& before, const std::vector<double>& after) { return paired(before, after, beyond); }

    /// Cores that have rested while a GPU solved, or whose team is made anew, are slower by a third: before who solves alone, or did, something that leaves them as its own solve does.
    void follow(Series& one, const std::function<double(Series&)>& solve) {
        const std::string own = chosen(one.report);
        if (own == before_) return;
        for (std::size_t k = 0; k < singles_; ++k)
            if (all_[k].name == own) return void(solve(all_[k]));
        settled(one, solve, most_trials);
    }

    /// What will not be the best of any set takes no more turns.
    void drop_slow_singles() {
        constexpr double surely_not_the_best = 1.1;
        std::erase_if(turns_, [&](const auto& turn) {
            if (turn.first >= all_.data() + singles_) return false;
            const auto single = static_cast<std::size_t>(turn.first - all_.data());
            for (std::size_t set = singles_; set < all_.size(); ++set)
                if (member(single, set) && median(all_[single].times) <= surely_not_the_best * median(all_[best_of(set)].times)) return false;
            return true;
        });
    }

    double least_of(const Series& single, const Series& set) const {
        const std::vector<std::string> parts = names_in(set.name);
        return std::count(parts.begin(), parts.end(), single.name) > 0 ? least(single) : INFINITY;
    }

    static double least(const Series& one) { return *std::min_element(one.learning.begin(), one.learning.end()); }

    bool member(std::size_t single, std::size_t set) const {
        const std::vector<std::string> parts = names_in(all_[set].name);
        return std::count(parts.begin(), parts.end(), all_[single].name) > 0;
    }

    /// Of some set.
    bool may_be_best(std::size_t single) const {
        for (std::size_t set = singles_; set < all_.size(); ++set) {
            if (!member(single, set)) continue;
            double best = least(all_[single]);
            for (std::size_t k = 0; k < singles_; ++k)
                if (member(k, set)) best = std::min(best, least(all_[k]));
            if (least(all_[single]) <= never_the_best * best) return true;
        }
        return false;
    }

    /// Of a set: its fastest member alone, by median.
    std::size_t best_of(std::size_t set) const {
        std::size_t first = singles_;
        for (std::size_t s = 0; s < singles_; ++s)
            if (member(s, set) && !all_[s].times.empty() && (first == singles_ || median(all_[s].times) < median(all_[first].times))) first = s;
        return first;
    }

    void put(const Series& set, const Series& single, const std::vector<double>& again, Record& record) const {
        const Paired over = ratio(single.times, set.times), itself = ratio(single.times, again);
        const auto total = [](const std::vector<double>& times) { return std::accumulate(times.begin(), times.end(), 0.0); };
        const char* const said = verdict(over, margin);
        const std::string most = std::max_element(set.who.begin(), set.who.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->first;
        Row row;
        row.set("kind", "choice").set("matrix", given_.name()).set("devices", set.name).set("dtype", name_of(dtype_)).set("rows", static_cast<double>(rows_));
        row.set("threads", static_cast<double>(threads_)).set("rounds", static_cast<double>(set.times.size())).set("seconds", median(set.times)).set("ok", set.outcome.ok());
        row.set("chosen", most).set("chosen_share", static_cast<double>(set.who.at(most)) / static_cast<double>(set.times.size()));
        row.set("best", single.name).set("best_seconds", median(single.times)).set("of_the_best", over.median).set("of_the_best_low", over.low).set("of_the_best_high", over.high);
        row.set("of_itself", itself.median).set("of_itself_low", itself.low).set("of_itself_high", itself.high).set("total_of_the_best", total(single.times) / total(set.times));
        const double of_one = median(single.times), learnt = static_cast<double>(set.learning.size()), tried = static_cast<double>(set.trials.size()), rounds = static_cast<double>(set.times.size());
        row.set("learning_solves", learnt).set("learning_trials", static_cast<double>(set.learning_trials)).set("learning_of_the_best", (set.beside.empty() ? of_one : median(set.beside)) * learnt / total(set.learning));
        row.set("trial_solves", tried).set("trials_of_the_best", tried > 0 ? of_one * tried / total(set.trials) : 1).set("all_of_the_best", of_one * (learnt + tried + rounds) / (total(set.learning) + total(set.trials) + total(set.times)));
        row.set("choosing_s", median(set.choosing)).set("learning_s", median(set.learnt));
        row.set("margin", margin).set("beyond", beyond).set("verdict", said).set("solves", set.log);
        std::fprintf(stderr, "  %-22s %s %-20s %.3g rows: %s (%.0f %%), %.3f (%.3f to %.3f) of %s, itself %.3f to %.3f, %zu rounds, %zu solves of trials %.3f, first %zu (%d of trials) %.3f, choosing %.0f and learning %.0f us: %s\n", set.name.c_str(), name_of(dtype_), given_.name().c_str(),
                     static_cast<double>(rows_), most.c_str(), 100 * row.number("chosen_share"), over.median, over.low, over.high, single.name.c_str(), itself.low, itself.high, set.times.size(), set.trials.size(), row.number("trials_of_the_best"), set.learning.size(), set.learning_trials, row.number("learning_of_the_best"), 1e6 * median(set.choosing), 1e6 * median(set.learnt), said);
        record.rows.push_back(std::move(row));
    }

    const Given& given_;
    const DType dtype_;
    const std::int64_t rows_;
    const int threads_;
    const Budget& budget_;
    std::vector<Series> all_;
    std::size_t singles_ = 0;
    std::string before_;  // who solved last
    std::vector<std::vector<double>> again_;
    std::vector<std::pair<Series*, std::vector<double>*>> turns_;
};

}  // namespace trifold::bench
