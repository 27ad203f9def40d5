// SPDX-License-Identifier: BSD-3-Clause
#include "bench/harness/race.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <random>

#include "bench/harness/memory.hpp"

namespace trifold::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double timed(const Runner& runner, int repeats, bool warm) {
    if (warm && runner.sample) runner.sample();
    // What a peer overwrites is brought back just before, and is warm then.
    if (warm && runner.run && !runner.prepare) runner.run();
    if (runner.prepare) runner.prepare();
    if (runner.sample) return runner.sample();
    const auto start = Clock::now();
    for (int k = 0; k < repeats; ++k) runner.run();
    return seconds_since(start) / repeats;
}

struct Lane {
    int repeats = 1;
    double used_s = 0;
    std::vector<double> times;
    double extra_bytes = 0;
};

Lane warmed_up(const Runner& runner) {
    constexpr double worth_timing = 20e-6;
    Lane lane;
    if (runner.prepare) runner.prepare();
    const bool reset = reset_peak();
    const std::size_t before = resident_bytes();
    const double first = runner.sample ? runner.sample() : timed({runner.name, {}, runner.run, {}}, 1, false);
    if (reset) lane.extra_bytes = static_cast<double>(std::max(peak_bytes(), before) - before);
    if (!runner.prepare && !runner.sample && first < worth_timing)
        lane.repeats = static_cast<int>(std::ceil(worth_timing / std::max(timed(runner, 10, false), 1e-9)));
    return lane;
}

}  // namespace

std::vector<Timing> race(const std::vector<Runner>& runners, const Pace& pace) {
    std::vector<Lane> lanes;
    for (const Runner& runner : runners) lanes.push_back(warmed_up(runner));
    const double share = pace.budget_s / static_cast<double>(std::max<std::size_t>(1, runners.size()));
    std::vector<std::size_t> order(runners.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::mt19937 shuffle(1);
    for (int round = 0; round < pace.rounds; ++round) {
        // Who runs after whom decides what lies in the caches: no one always follows the same.
        std::shuffle(order.begin(), order.end(), shuffle);
        for (const std::size_t k : order) {
            Lane& lane = lanes[k];
            if (round >= pace.least && lane.used_s > share) continue;
            const auto start = Clock::now();
            lane.times.push_back(timed(runners[k], lane.repeats, pace.warm));
            lane.used_s += seconds_since(start);
        }
    }
    std::vector<Timing> out;
    for (Lane& lane : lanes) {
        std::sort(lane.times.begin(), lane.times.end());
        const std::size_t n = lane.times.size();
        const double middle = n % 2 ? lane.times[n / 2] : (lane.times[n / 2 - 1] + lane.times[n / 2]) / 2;
        out.push_back({middle, lane.times.front(), lane.times.back(), static_cast<int>(n), lane.extra_bytes});
    }
    return out;
}

}  // namespace trifold::bench
