// SPDX-License-Identifier: BSD-3-Clause
// Energy counters of the host's processors, from Linux powercap zones.
#pragma once

#include <string>
#include <vector>

#include "devices/powercap.hpp"

namespace trifold::devices {

/// The counters of all packages and of their memory, one sum. Whole packages: what else runs there is counted in.
class Rapl {
public:
    explicit Rapl(const std::string& root = powercap_root());

    /// Empty where the counters can be read; else why not, and what to do.
    const std::string& why_not() const noexcept { return why_not_; }

    /// Zones that are summed: "package-0, dram".
    std::string zones() const;

    /// Joules since construction; NaN where a counter cannot be read. A counter may wrap once between two calls, which takes
    /// minutes at the least.
    double joules();

private:
    struct Zone {
        std::string name, path;
        double range, last;  // microjoules
    };
    std::vector<Zone> zones_;
    std::string why_not_;
    double sum_ = 0;
};

}  // namespace trifold::devices
