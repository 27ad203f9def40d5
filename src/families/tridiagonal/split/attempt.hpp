// SPDX-License-Identifier: BSD-3-Clause
// What both ways of a split solve have in common: lanes, threads, and the account of who did what.
#pragma once

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "families/tridiagonal/split/executor.hpp"
#include "families/tridiagonal/split/lane.hpp"

namespace trifold::tridiagonal::split {

/// A link is busy with this much of an array for some milliseconds.
inline constexpr std::size_t slot_array_bytes = std::size_t{32} << 20;

class Attempt {
protected:
    Attempt(const System& system, const Setting& setting, Clock::time_point start) : system_(system), setting_(setting), start_(start), done_(setting.parts.size() + 1), left_(setting.parts.size() + 1) {
        for (std::size_t k = 0; k < setting.parts.size(); ++k) pulses_.push_back(is_host(k) ? nullptr : std::make_shared<Pulse>());
    }

    double since() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

    Trouble trouble_of(std::size_t k) const { return k < setting_.trouble.size() ? setting_.trouble[k] : Trouble{}; }
    int copiers() const { return std::clamp(setting_.threads / 2, 1, 8); }
    bool on_host(std::size_t k) const { return !setting_.parts[k].runtime; }
    bool is_host(std::size_t k) const { return setting_.parts[k].ops == setting_.host; }
    Calls calls_of(std::size_t k) const { return {trouble_of(k), pulses_[k], k < setting_.ready.size() ? setting_.ready[k] : Readiness{}}; }
    Part host_part() const { return {setting_.host->device, setting_.host, nullptr, 0}; }

    int host_threads() const { return split::host_threads(setting_.parts, setting_.threads); }

    std::int64_t wanted_slot_rows() const {
        return std::min(system_.rows, setting_.slot_rows > 0 ? setting_.slot_rows : static_cast<std::int64_t>(slot_array_bytes / size_of(system_.dtype)));
    }

    Pace pace_of(std::size_t k) {
        Pace pace;
        if (std::count(setting_.left_behind.begin(), setting_.left_behind.end(), setting_.parts[k].name)) {
            pace.takes_part = false, done_[k].share.state = std::string("left out: ") + not_returned;
            return pace;
        }
        if (k < setting_.rows_per_s.size()) pace.rows_per_s = setting_.rows_per_s[k];
        pace.least = setting_.least_rows > 0 ? setting_.least_rows : 1 << 14;
        return pace;
    }

    /// work(k) for all who take part, at the same time; the host's own on this thread, whose team is warm. `left`: k was left behind.
    template <class Takes, class Work, class Left>
    void on_lanes(const Takes& takes, const Work& work, const Left& left) {
        LaneThreads threads(setting_.patience_s, [&](std::size_t k) {
            char text[96];
            std::snprintf(text, sizeof text, "a call has not returned for %g s", setting_.patience_s);
            left_[k] = true;
            done_[k].retired += done_[k].retired.empty() ? text : std::string("; then ") + text;
            left(k);
        });
        int here = -1;
        for (std::size_t k = 0; k < setting_.parts.size(); ++k) {
            if (!takes(k)) continue;
            if (here < 0 && is_host(k)) here = static_cast<int>(k);
            else threads.start(k, pulses_[k] ? pulses_[k] : std::make_shared<Pulse>(), [&work, k] { work(k); });
        }
        if (here >= 0) work(static_cast<std::size_t>(here));
        threads.wait();
    }

    /// The place of the one that takes what is left, if it comes to that.
    std::size_t rescuer() const { return setting_.parts.size(); }

    void report() {
        result_.rows_per_s.clear(), result_.devices.clear(), result_.left_behind.clear();
        for (std::size_t k = 0; k < setting_.parts.size(); ++k) {
            Done& done = done_[k];
            done.share.name = setting_.parts[k].name;
            if (!done.retired.empty()) done.share.state = "retired: " + done.retired;
            if (done.share.busy_s > 0) done.share.rows_per_s = static_cast<double>(done.share.rows) / done.share.busy_s;
            if (left_[k]) result_.left_behind.push_back(done.share.name);
            result_.rows_per_s.push_back(done.share.rows_per_s);
            result_.devices.push_back(done.share);
        }
        if (done_.back().share.rows > 0) {
            done_.back().share.name = setting_.host->device;
            done_.back().share.state = "took what was left";
            result_.devices.push_back(done_.back().share);
        }
        for (Done& done : done_) result_.trace.insert(result_.trace.end(), done.trace.begin(), done.trace.end()), done.trace.clear();
    }

    Result give_up(const char* why) {
        result_.why = why;
        return std::move(result_);
    }

    const System& system_;
    const Setting& setting_;
    const Clock::time_point start_;
    std::vector<Done> done_;  // by part; the last one is the rescuer's
    std::vector<std::shared_ptr<Pulse>> pulses_;
    std::vector<char> left_;  // behind
    Result result_;
};

/// By windows around the chunks' ends, where the matrix forgets within `width` rows; dx is cut off where it is below `close`.
Result solve_joined(const System& system, const Setting& setting, std::int64_t width, double close, Clock::time_point start);

/// In two passes, coupled.
Result solve_coupled(const System& system, const Setting& setting, Clock::time_point start);

}  // namespace trifold::tridiagonal::split
