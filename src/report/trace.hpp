// SPDX-License-Identifier: BSD-3-Clause
// What devices did in a split or streamed solve (Report::trace): as a trace for a viewer, as a picture, and in figures.
#pragma once

#include <string>
#include <vector>

#include "trifold/report.hpp"

namespace trifold::report {

/// Of one device; seconds in which at least one of its events of that kind was under way.
struct DeviceTimes {
    std::string name;         ///< "host": joins
    double busy_s = 0;        ///< anything
    double kernel_s = 0, link_s = 0, host_s = 0;  ///< kernels; copies over the link; copies within the host's memory and joins
    double hidden_s = 0;      ///< kernels and link at the same time
    double bytes_to = 0, bytes_from = 0, kernel_bytes = 0;
};

struct TraceSummary {
    double seconds = 0;                 ///< from the first event to the last
    double together_s = 0;              ///< in which two devices or more were busy
    std::vector<DeviceTimes> devices;   ///< as Report::devices, then "host" where it did anything
};

TraceSummary summary(const trifold::Report& report);

/// Trace Event Format, as chrome://tracing and Perfetto read it: a process per device, a thread per slot, complete events in microseconds.
std::string chrome_trace(const trifold::Report& report);

/// A row per device and slot, colours by phase. Empty where there are no events.
std::string timeline_svg(const trifold::Report& report);

}  // namespace trifold::report
