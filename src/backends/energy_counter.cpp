// SPDX-License-Identifier: BSD-3-Clause
#include "backends/energy_counter.hpp"

#include <limits>

namespace trifold {

EnergyCounter::EnergyCounter(const Device& device) : name_(device.name), runtime_(device.runtime), number_(device.number) {
    if (!runtime_) {
        rapl_.emplace();
        source_ = "RAPL: " + rapl_->zones(), why_not_ = rapl_->why_not();
    } else if (!runtime_->joules) {
        why_not_ = name_ + " has no energy counter";
    } else {
        source_ = "NVML, the whole board";
        Failure failure;
        double now = 0;
        if (!runtime_->joules(number_, &now, failure)) why_not_ = failure.message;
    }
}

double EnergyCounter::joules() {
    if (rapl_) return rapl_->joules();
    Failure failure;
    double now = 0;
    return runtime_->joules && runtime_->joules(number_, &now, failure) ? now : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace trifold
