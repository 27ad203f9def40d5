// SPDX-License-Identifier: BSD-3-Clause
// Programs timed in turns, so that whatever else the machine does disturbs them alike.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace trifold::bench {

struct Runner {
    std::string name;
    std::function<void()> prepare;   ///< before every run, not timed; may be empty
    std::function<void()> run;       ///< timed
    std::function<double()> sample;  ///< instead of run: times itself and returns seconds
};

struct Timing {
    double median = 0, best = 0, worst = 0;  ///< seconds of one run
    int samples = 0;
    double extra_bytes = 0;                  ///< resident memory that the first run took beyond what was there before
};

struct Pace {
    int rounds = 9;         ///< at most
    int least = 3;          ///< rounds of every runner, whatever they cost
    bool warm = false;      ///< an untimed run before every timed one: the arrays then lie in the cache they fit
    double budget_s = 10;   ///< for all runners together; a runner that used up its share sits out
};

/// One untimed run of each, then rounds in which every runner runs once, in shuffled order. Runs shorter than 20 µs are repeated within a
/// sample where there is nothing to prepare.
std::vector<Timing> race(const std::vector<Runner>& runners, const Pace& pace);

}  // namespace trifold::bench
