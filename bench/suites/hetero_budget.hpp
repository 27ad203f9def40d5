// SPDX-License-Identifier: BSD-3-Clause
// The time that a suite may take, shared out among its stages: what one leaves over is the next ones'.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>

namespace trifold::bench {

class Budget {
public:
    using Clock = std::chrono::steady_clock;

    /// seconds: of all stages, whose weights add up to so much; 0 = as long as they take.
    Budget(double seconds, double weights) : seconds_(seconds > 0 ? seconds : std::numeric_limits<double>::infinity()), weights_(weights) {}

    void stage(double weight) {
        const double left = std::max(0.0, seconds_ - since(start_));
        stage_start_ = Clock::now(), stage_s_ = left * std::min(1.0, weight / std::max(weights_, weight));
        weights_ -= weight;
    }

    /// Of this stage.
    double given() const { return stage_s_; }
    double left() const { return stage_s_ - since(stage_start_); }

    void done(const char* what) const { std::fprintf(stderr, "  [%s: %.1f s; %.1f s so far]\n", what, since(stage_start_), since(start_)); }

private:
    static double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

    Clock::time_point start_ = Clock::now(), stage_start_ = start_;
    double seconds_, weights_, stage_s_ = 0;
};

}  // namespace trifold::bench
