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

devices::PowerLimit limit_of(const std::string& device, const devices::PowerLimits& limits) {
    const auto found = limits.find(device);
    return found == limits.end() ? devices::PowerLimit() : found->second;
}

std::string what_to_give(const std::string& device, const devices::PowerLimit& limit) {
    return (limit.watts > 0 ? "its part of the processors' power limit is not known" : "no power limit of it is known") + (": give --watts " + device) + "=WATTS";
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

std::string watts_note(const devices::PowerLimit& limit) { return watts_note(limit.watts) + ", " + limit.source; }

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

void complete(Energy& energy, const trifold::Report& report, const Watts& watts, const devices::PowerLimits& limits) {
    if (energy.devices.empty()) energy.devices = energy_without_joules(report);
    const TraceSummary times = summary(report);
    // Of what computes on the host's processors: how long they were busy, and whether watts were given for some of it.
    double host_s = 0;
    bool host_given = false, host_counted = false;
    for (const DeviceEnergy& one : energy.devices)
        if (limit_of(one.device, limits).host) host_s = std::max(host_s, computing_s(one.device, report, times)), host_given = host_given || watts.contains(one.device);
    for (DeviceEnergy& one : energy.devices) {
        if (!std::isnan(one.joules)) continue;
        const devices::PowerLimit limit = limit_of(one.device, limits);
        if (const auto given = watts.find(one.device); given != watts.end()) {
            one.joules = given->second * computing_s(one.device, report, times);
            one.kind = "estimated", one.note = watts_note(given->second);
        } else if (limit.host && host_counted) {
            one.joules = 0, one.kind = "estimated", one.note = counted_with_the_host;
        } else if (limit.watts > 0 && !(limit.host && host_given)) {
            one.joules = limit.watts * (limit.host ? host_s : computing_s(one.device, report, times));
            one.kind = "estimated", one.note = watts_note(limit);
            host_counted = host_counted || limit.host;
        } else {
            one.note += (one.note.empty() ? "" : "; ") + what_to_give(one.device, limit);
        }
    }
    add_up(energy);
}

}  // namespace trifold::report
