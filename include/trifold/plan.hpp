// SPDX-License-Identifier: BSD-3-Clause
// A plan: what will be tried, on which device, what it falls back to, and how long that is thought to take.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trifold/export.hpp"

namespace trifold {

/// What the devices that share a solve are chosen for: seconds, joules, or their product.
enum class Objective : std::uint8_t { time, energy, edp };

/// "time", "energy", "edp"; `objective_from` throws Error(usage) with the nearest name.
TRIFOLD_API const char* name_of(Objective objective) noexcept;
TRIFOLD_API Objective objective_from(std::string_view name);

struct Candidate {
    std::string algorithm;
    std::string device;
    double predicted_s = 0;  ///< seconds; NaN where this candidate cannot run
    bool taken = false;
    std::string why;         ///< why it was taken, or refused
};

struct Plan {
    std::vector<std::string> branch;    ///< algorithms in the order in which they are tried
    std::string device;
    double predicted_s = 0;             ///< of the first branch
    std::string why;
    std::vector<Candidate> candidates;  ///< filled by plan(), all that were looked at
    std::string profile;                ///< "measured now", "profile DATE", or "defaults"
};

}  // namespace trifold
