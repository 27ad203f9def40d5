// SPDX-License-Identifier: BSD-3-Clause
// Joules of a solve, from the counters of the device that computes: RAPL for the host's processors, NVML for an NVIDIA GPU.
#pragma once

#include <functional>
#include <string>

#include "devices/rapl.hpp"
#include "report/record.hpp"
#include "trifold/context.hpp"

namespace trifold::cli {

class EnergyMeter {
public:
    explicit EnergyMeter(const Queue& queue);

    /// Repeats the solve for at least two seconds, since counters move in steps of up to 100 ms, and divides. Stops at the first
    /// solve that returns false.
    report::Energy measure(const std::function<bool()>& solve);

private:
    double joules();

    const Queue& queue_;
    devices::Rapl rapl_;
    std::string source_, why_not_;
};

}  // namespace trifold::cli
