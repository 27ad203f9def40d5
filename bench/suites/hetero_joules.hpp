// SPDX-License-Identifier: BSD-3-Clause
// Joules of a solve: by the devices' counters, or estimated from watts where there is none.
#pragma once

#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "backends/energy_counter.hpp"
#include "backends/power_limit.hpp"
#include "backends/registry.hpp"
#include "bench/harness/record.hpp"
#include "report/energy.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::bench {

/// Solves over `least_s`, which should be most of a second, since counters move in steps.
inline void joules(Queue& queue, const tridiagonal::Problem& problem, const Report& report, const report::Watts& watts, double rows, double least_s, Row& row) {
    const Device& device = device_at(queue.device_index());
    std::vector<EnergyCounter> counters;
    if (device.parts.empty()) counters.emplace_back(device);
    for (const Device* part : device.parts) counters.emplace_back(*part);
    std::vector<double> before;
    for (EnergyCounter& counter : counters) before.push_back(counter.joules());
    int solves = 0;
    for (const auto start = std::chrono::steady_clock::now(); solves == 0 || std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < least_s; ++solves) tridiagonal::solve(queue, problem);
    report::Energy energy;
    for (std::size_t k = 0; k < counters.size(); ++k) {
        const double joules = (counters[k].joules() - before[k]) / solves;
        const bool measured = std::isfinite(joules);
        energy.devices.push_back({counters[k].device(), joules, measured ? "measured" : "unknown", measured ? counters[k].source() : counters[k].why_not()});
    }
    report::complete(energy, report, watts, power_limits(device));
    row.set("joules", energy.joules).set("joules_kind", energy.kind).set("joules_note", energy.note).set("rows_per_joule", rows / energy.joules);
}

}  // namespace trifold::bench
