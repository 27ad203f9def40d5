// SPDX-License-Identifier: BSD-3-Clause
#include "report/energy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "report/trace.hpp"
#include "trifold/error.hpp"

namespace trifold::report {
namespace {

/// A device over a link computes while its kernels run; one in the host's memory while it has a chunk.
double computing_s(const std::string& device, const trifold::Report& report, const TraceSummary& times) {
    if (report.devices.empty()) return report.solve_s;
    double seconds = 0;
    for (const DeviceShare& share : report.devices)
        if (share.name == device) seconds = share.busy_s;
    for (const DeviceTimes& device_times : times.devices)
        if (device_times.name == device && device_times.link_s > 0) seconds = device_times.kernel_s;
    return seconds;
}

}  // namespace

Watts watts_from(const std::string& text) {
    Watts watts;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t comma = std::min(text.find(',', at), text.size());
        const std::string one = text.substr(at, comma - at);
        const std::size_t equals = one.rfind('=');
        char* end = nullptr;
        const double value = equals == one.npos ? NAN : std::strtod(one.c_str() + equals + 1, &end);
        if (equals == one.npos || equals == 0 || end == one.c_str() + equals + 1 || *end || !(value > 0) || !std::isfinite(value))
            throw Error(ErrorCode::usage, "--watts", "'" + one + "' is no DEVICE=WATTS", "for example: cpu=140,cuda:0=700");
        if (!watts.emplace(one.substr(0, equals), value).second) throw Error(ErrorCode::usage, "--watts", "'" + one.substr(0, equals) + "' is named twice", "name each device once");
        at = comma + 1;
    }
    return watts;
}

std::string watts_note(double watts) { return fmt::format("{:.3g} W while it computes", watts); }

std::vector<DeviceEnergy> energy_without_joules(const trifold::Report& report) {
    std::vector<DeviceEnergy> out;
    for (const DeviceShare& share : report.devices) out.push_back({share.name, unknown, "unknown", ""});
    if (out.empty()) out.push_back({report.outcome.device, unknown, "unknown", ""});
    return out;
}

void add_up(Energy& energy) {
    energy.joules = 0, energy.kind = "measured", energy.note.clear();
    for (const DeviceEnergy& one : energy.devices) {
        energy.joules += one.joules;
        if (one.kind == "unknown") energy.kind = "unknown";
        else if (one.kind == "estimated" && energy.kind == "measured") energy.kind = "estimated";
        if (one.note.empty()) continue;
        energy.note += (energy.note.empty() ? "" : "; ") + (energy.devices.size() > 1 ? one.device + ": " + one.note : one.note);
    }
    if (energy.kind == "unknown") energy.joules = unknown;
}

void complete(Energy& energy, const trifold::Report& report, const Watts& watts) {
    if (energy.devices.empty()) energy.devices = energy_without_joules(report);
    const TraceSummary times = summary(report);
    for (DeviceEnergy& one : energy.devices) {
        const auto known = watts.find(one.device);
        if (!std::isnan(one.joules) || known == watts.end()) continue;
        one.joules = known->second * computing_s(one.device, report, times);
        one.kind = "estimated", one.note = watts_note(known->second);
    }
    add_up(energy);
}

}  // namespace trifold::report
