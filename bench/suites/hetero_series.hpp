// SPDX-License-Identifier: BSD-3-Clause
// What is timed of one system on many devices and sets of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/suites/hetero_all.hpp"
#include "bench/suites/hetero_arrays.hpp"
#include "trifold/report.hpp"

namespace trifold::bench {

inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values.empty() ? NAN : values[values.size() / 2];
}

/// One system and how it is given.
struct Given {
    Matrix matrix = Matrix::dominant;
    bool in_place = false, pageable = false;
    bool energy = false;   ///< joules too
    bool ceiling = false;  ///< cores and link side by side too

    std::string name() const { return std::string(matrix_names[static_cast<int>(matrix)]) + (in_place ? ", in place" : "") + (pageable ? ", pageable" : ""); }
};

/// One set of devices on it.
struct Series {
    std::string name;
    std::unique_ptr<Queue> queue;
    std::vector<double> learning, times, of_all;  ///< of_all: nobody left out, whatever was learnt
    std::vector<double> trials;                   ///< between the rounds, where they are apart
    std::vector<double> beside;                   ///< of the best device, between the first solves
    int learning_trials = 0;                      ///< of the first solves
    std::unique_ptr<AllTogether> all;             ///< of sets
    std::map<std::string, int> who;               ///< of the rounds
    Report report;
    Outcome outcome;
    double error = 0, look_s = 0;
    std::vector<double> choosing, learnt;  ///< who takes part, and what is learnt of it: seconds of every solve, as its report has them
    std::string log;  ///< of every solve: µs, and who took part
};

/// Who took part: "cpu,cuda:0".
inline std::string chosen(const Report& report) {
    std::string names;
    for (const DeviceShare& share : report.devices)
        if (share.rows > 0) names += (names.empty() ? "" : ",") + share.name;
    return names.empty() ? report.outcome.device : names;
}

/// Its last solve was by devices that were taken to be timed.
inline bool on_trial(const Series& one) {
    return std::any_of(one.report.plan.candidates.begin(), one.report.plan.candidates.end(), [](const Candidate& next) { return next.taken && next.why.starts_with("taken to be timed"); });
}

/// The first solve of a set makes buffers; by the next ones the planner learns who is worth taking part, as its plans say.
inline bool learns(const Series& one) {
    if (one.learning.size() < 2) return true;
    return one.learning.size() < 40 && on_trial(one);
}

/// Seconds of one solve, no trial: trials before it go on to their end, so many of them, with some solves that follow them, which are not settled yet.
inline double settled(Series& one, const std::function<double(Series&)>& solve, int most_trials) {
    constexpr int after_trial = 4, longest_trial = 32;  // longer than any: a device that is not ready is asked for again and again
    double seconds = solve(one);
    for (int trial = 0; on_trial(one) && trial < most_trials; ++trial) {
        for (int k = 0; k < longest_trial && on_trial(one); ++k) one.trials.push_back(seconds), seconds = solve(one);
        for (int k = 0; k < after_trial && !on_trial(one); ++k) one.trials.push_back(seconds), seconds = solve(one);
    }
    return seconds;
}

/// How many times as fast as `than`: what disturbs a round disturbs both.
inline double round_by_round(const Series& than, const Series& one) {
    std::vector<double> ratios;
    for (std::size_t k = 0; k < std::min(than.times.size(), one.times.size()); ++k) ratios.push_back(than.times[k] / one.times[k]);
    return median(std::move(ratios));
}

}  // namespace trifold::bench
