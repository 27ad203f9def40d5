// SPDX-License-Identifier: BSD-3-Clause
// Machines that the contention model plays, which solve the same kind of system again and again.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "devices/contention.hpp"
#include "planner/split_choice.hpp"

namespace trifold::tests {

using namespace tridiagonal;

/// A machine that solves the same kind of system again and again.
class Played {
public:
    Played(devices::Machine machine, SplitProblem problem) : machine_(std::move(machine)), problem_(problem) {
        for (const devices::SideBySide& device : machine_.devices) members_.push_back({device.name, device.to_bytes_per_s > 0, device.watts});
    }

    /// `slower`: this solve is disturbed.
    SplitChoice solve(double slower = 1) {
        const SplitChoice choice = choose_members(rates, members_, problem_);
        const devices::Combination done = together(machine_, choice.members, problem_.rows);
        std::vector<SplitWork> work;
        for (std::size_t d = 0; d < members_.size(); ++d)
            work.push_back({done.rows[d], members_[d].linked && done.rows[d] > 0 ? done.rows[d] / machine_.devices[d].rows_per_s : 0});
        remember(rates, members_, choice, problem_, {.seconds = slower * done.seconds}, work);
        return choice;
    }

    /// What is taken in the end.
    SplitChoice settle() {
        SplitChoice last{};
        for (int k = 0; k < 200; ++k)
            if (const SplitChoice choice = solve(); !choice.learning) last = choice;
        EXPECT_NE(last.members, 0u);
        return last;
    }

    double seconds(std::uint32_t set) const { return together(machine_, set, problem_.rows).seconds; }
    double best_single() const {
        double least = INFINITY;
        for (std::size_t k = 0; k < members_.size(); ++k) least = std::min(least, seconds(1u << k));
        return least;
    }
    devices::Machine& machine() { return machine_; }

    devices::Rates rates;

private:
    devices::Machine machine_;
    SplitProblem problem_;
    std::vector<SplitMember> members_;
};

inline devices::SideBySide cores(const char* name, double rows_per_s, double watts = 0) {
    devices::SideBySide device;
    device.name = name, device.rows_per_s = rows_per_s, device.host_bytes = 20, device.watts = watts;
    return device;
}

inline devices::SideBySide card(const char* name, double link, double watts = 0) {
    devices::SideBySide device;
    device.name = name, device.rows_per_s = 100e9, device.to_bytes_per_s = device.from_bytes_per_s = link, device.bytes_to = 16, device.bytes_from = 4, device.host_bytes = 20, device.watts = watts;
    return device;
}

inline const SplitProblem billion{.rows = 1e9, .dtype = DType::f32};

}  // namespace trifold::tests
