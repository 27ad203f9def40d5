// SPDX-License-Identifier: BSD-3-Clause
#include "devices/contention.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "trifold/error.hpp"

namespace trifold::devices {
namespace {

constexpr double worth_a_device = 0.01;

bool member(std::uint32_t members, std::size_t k) { return members >> k & 1; }

/// Rates where memory is shared: turn by turn; within one turn all are slowed by the same factor until they fit what is left.
std::vector<double> contended(const Machine& machine, std::uint32_t members) {
    std::vector<double> rates(machine.devices.size());
    std::vector<int> turns;
    for (std::size_t k = 0; k < rates.size(); ++k)
        if (member(members, k)) turns.push_back(machine.devices[k].turn);
    std::sort(turns.begin(), turns.end());
    turns.erase(std::unique(turns.begin(), turns.end()), turns.end());
    double left = machine.host_bytes_per_s;
    for (const int turn : turns) {
        double wanted = 0;
        const auto each = [&](auto&& act) {
            for (std::size_t k = 0; k < rates.size(); ++k)
                if (member(members, k) && machine.devices[k].turn == turn) act(machine.devices[k], rates[k]);
        };
        each([&](const SideBySide& device, double& rate) {
            rate = device.alone(machine.host_bytes_per_s);
            wanted += rate * device.host_bytes;
        });
        const double factor = wanted > left ? left / wanted : 1;
        each([&](const SideBySide&, double& rate) { rate *= factor; });
        left = std::max(0.0, left - wanted);
    }
    return rates;
}

/// When `rows` are done by devices that begin one after the other, each at its own rate.
double seconds_until_done(const Machine& machine, const std::vector<double>& rates, double rows) {
    std::vector<std::size_t> order;
    for (std::size_t k = 0; k < rates.size(); ++k)
        if (rates[k] > 0) order.push_back(k);
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return machine.devices[a].start_s < machine.devices[b].start_s; });
    double rate = 0, done = 0, now = 0;
    for (const std::size_t k : order) {
        const double start = machine.devices[k].start_s;
        if (done + rate * (start - now) >= rows) break;
        done += rate * (start - now), now = start, rate += rates[k];
    }
    return now + (rows - done) / rate;
}

void check(const Machine& machine, std::uint32_t members) {
    const auto refuse = [](const std::string& what) { throw Error(ErrorCode::usage, "machine", what); };
    if (machine.devices.empty() || members == 0) refuse("has no devices");
    if (machine.devices.size() > most_devices) refuse("has more than " + std::to_string(most_devices) + " devices");
    if (members >> machine.devices.size()) refuse("has fewer devices than were named");
    if (!(machine.host_bytes_per_s > 0)) refuse("needs the bandwidth of the host's memory");
    for (const SideBySide& device : machine.devices)
        if (const double rate = device.alone(machine.host_bytes_per_s); !(rate > 0) || !std::isfinite(rate)) refuse("'" + device.name + "' has no rate");
}

}  // namespace

double SideBySide::alone(double host_bytes_per_s) const noexcept {
    double rate = rows_per_s;
    const double to = to_bytes_per_s > 0 ? bytes_to / to_bytes_per_s : 0, from = from_bytes_per_s > 0 ? bytes_from / from_bytes_per_s : 0;
    for (const double seconds : {both_ways ? std::max(to, from) : to + from, host_bytes / host_bytes_per_s})
        if (seconds > 0) rate = std::min(rate, 1 / seconds);
    return rate;
}

double Combination::cost(Objective objective) const noexcept {
    switch (objective) {
        case Objective::time: return seconds;
        case Objective::energy: return joules;
        case Objective::edp: return joules * seconds;
    }
    return seconds;
}

Combination together(const Machine& machine, std::uint32_t members, double rows) {
    check(machine, members);
    Combination result;
    result.members = members;
    result.rows_per_s = contended(machine, members);
    result.seconds = seconds_until_done(machine, result.rows_per_s, rows);
    result.joules = machine.base_watts * result.seconds;
    for (std::size_t k = 0; k < machine.devices.size(); ++k) {
        const SideBySide& device = machine.devices[k];
        const double rate = result.rows_per_s[k], own = rate * std::max(0.0, result.seconds - device.start_s);
        result.total_rows_per_s += rate;
        result.rows.push_back(own);
        // A device of its own memory rests where its link keeps it waiting; cores that wait for memory do not.
        const bool linked = device.to_bytes_per_s > 0 || device.from_bytes_per_s > 0;
        const double busy = own == 0 ? 0 : own / (linked ? device.rows_per_s : rate);
        result.joules += device.watts * busy + device.idle_watts * (result.seconds - busy);
    }
    return result;
}

Combination best(const Machine& machine, double rows, Objective objective) {
    const auto all = static_cast<std::uint32_t>((std::uint64_t{1} << std::min<std::size_t>(machine.devices.size(), most_devices)) - 1);
    check(machine, all);
    double least = std::numeric_limits<double>::infinity();
    for (std::uint32_t members = 1; members <= all; ++members) least = std::min(least, together(machine, members, rows).cost(objective));
    Combination chosen;
    for (std::uint32_t members = 1; members <= all; ++members) {
        Combination next = together(machine, members, rows);
        if (next.cost(objective) > least * (1 + worth_a_device)) continue;
        const int fewer = chosen.members ? std::popcount(members) - std::popcount(chosen.members) : -1;
        if (fewer < 0 || (fewer == 0 && next.cost(objective) < chosen.cost(objective))) chosen = std::move(next);
    }
    return chosen;
}

}  // namespace trifold::devices
