// SPDX-License-Identifier: BSD-3-Clause
// Joules of a solve, from the counters of the devices that compute: RAPL for the host's processors, NVML for an NVIDIA GPU; or from watts that the user gives.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backends/energy_counter.hpp"
#include "report/energy.hpp"
#include "trifold/context.hpp"

namespace trifold::cli {

class EnergyMeter {
public:
    /// Counters of the queue's device, or of all that it names.
    explicit EnergyMeter(const Queue& queue);

    /// Repeats the solve for at least two seconds, since counters move in steps of up to 100 ms, and divides. Stops at the first
    /// solve that returns false. Devices without a counter get no joules, and a note.
    report::Energy measure(const std::function<bool()>& solve);

private:
    std::vector<EnergyCounter> counters_;
};

}  // namespace trifold::cli
