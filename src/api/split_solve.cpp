// SPDX-License-Identifier: BSD-3-Clause
#include "api/split_solve.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "backends/registry.hpp"
#include "devices/context_state.hpp"

namespace trifold::tridiagonal {
namespace {

// Below, one device has solved it before others have begun.
constexpr std::int64_t least_rows = 1 << 16;

// One device takes a system of fewer bytes whole: its copies overlap with nothing, and need no joining.
constexpr double worth_streaming = 256.0 * (1 << 20);

const Ops& tridiagonal_ops(const Device& device) { return *static_cast<const Ops*>(find_cell(device, "tridiagonal").ops); }

double bytes_of(const System& system) {
    double words = 2;
    for (const Operand* operand : {&system.lower, &system.diag, &system.upper}) words += operand->kind == Operand::Kind::view;
    return words * static_cast<double>(system.rows) * static_cast<double>(size_of(system.dtype));
}

void require_host(const devices::Runtime& runtime, int number, const char* device, const System& system) {
    for (const auto& [name, operand] : {std::pair{"lower", &system.lower}, {"diag", &system.diag}, {"upper", &system.upper}, {"rhs", &system.rhs}, {"x", &system.x}}) {
        if (operand->kind != Operand::Kind::view) continue;
        const char* const inside = static_cast<const char*>(operand->data) + (system.rows > 1 ? size_of(system.dtype) : 0);
        if (runtime.where(number, inside).kind == MemoryKind::device)
            throw Error(ErrorCode::usage, name, std::string("memory of '") + device + "' in a solve on several devices", "give arrays of the host");
    }
}

std::string names_of(const std::vector<split::Part>& parts) {
    std::string names;
    for (const split::Part& part : parts) names += (names.empty() ? "" : ",") + part.name;
    return names;
}

// Of one device while these run. Rates of systems that fit caches say nothing of those that do not: by size, in steps of four.
std::string rate_key(const std::string& of, const std::vector<split::Part>& parts, const System& system, const split::Reach& reach) {
    return of + " of " + names_of(parts) + (reach.width == 0 ? " coupled" : "") + (system.dtype == DType::f32 ? " f32 " : " f64 ") + std::to_string(std::bit_width(static_cast<std::uint64_t>(system.rows)) / 2);
}

double tolerance_of(const System& system, const Options& options) { return options.tolerance > 0 ? options.tolerance : unit_roundoff(system.dtype); }

const Ops& host_ops() { return tridiagonal_ops(device_at(find_device("cpu"))); }

bool fits(const split::Part& part, const System& system) {
    std::size_t free = 0, total = 0;
    Failure failure;
    return part.runtime->memory_info(part.number, &free, &total, failure) &&
           bytes_of(system) + static_cast<double>(part.ops->workspace(system, Algorithm::automatic, 1)) < 0.9 * static_cast<double>(free);
}

}  // namespace

std::vector<split::Part> split_parts(const Device& device, const System& system, const Options& options) {
    std::vector<split::Part> parts;
    const auto add = [&](const Device& one) {
        const Ops& ops = tridiagonal_ops(one);
        if (!ops.refuses(split::slice(system, 0, system.rows), Algorithm::automatic)) parts.push_back({one.name, &ops, one.runtime, one.number});
    };
    for (const Device* part : device.parts)
        if (part->runtime) require_host(*part->runtime, part->number, part->name, system);
    if (options.algorithm != Algorithm::automatic || system.rows < least_rows || split::refuses(system)) return parts;
    for (const Device* part : device.parts) add(*part);
    if (device.runtime && device.runtime->open_stream && bytes_of(system) >= worth_streaming) add(device);
    return parts;
}

split::Reach look_before(const System& system, const Options& options) { return split::look(system, host_ops(), tolerance_of(system, options)); }

bool host_alone(const std::vector<split::Part>& parts) { return parts.size() == 1 && parts[0].ops == &host_ops(); }

std::vector<split::Part> choose_parts(Context::State& state, const std::vector<split::Part>& all, const System& system, const split::Reach& reach) {
    if (all.size() < 2) return all;
    devices::Rates& rates = state.rates();
    // The first solve compiles, allocates and finds its pace: everybody, twice.
    if (rates.of(rate_key("solves", all, system, reach)) < 2) return all;
    std::vector<std::vector<split::Part>> sets{all};
    const auto rate = [&](const split::Part& part) { return rates.of(rate_key(part.name, all, system, reach)); };
    const auto slower = [&](const split::Part& a, const split::Part& b) { return rate(a) < rate(b); };
    if (all.size() > 2) {
        sets.push_back(all);
        sets.back().erase(std::min_element(sets.back().begin(), sets.back().end(), slower));
    }
    sets.push_back({*std::max_element(all.begin(), all.end(), slower)});
    std::size_t best = 0;
    double most = 0;
    for (std::size_t k = 0; k < sets.size(); ++k) {
        const double total = rates.of(rate_key("all", sets[k], system, reach));
        if (rates.of(rate_key("solves", sets[k], system, reach)) < 2) return sets[k];
        if (total >= most) most = total, best = k;  // of equals the fewer
    }
    return sets[best];
}

void learn(Context::State& state, const std::vector<split::Part>& parts, const System& system, const split::Reach& reach, double seconds) {
    devices::Rates& rates = state.rates();
    const std::string solves = rate_key("solves", parts, system, reach), all = rate_key("all", parts, system, reach);
    const double before = rates.of(solves), rate = static_cast<double>(system.rows) / seconds;
    // The first one does not count.
    if (before >= 1 && rates.of(all) > rate) rates.saw(all, rate);
    else if (before >= 1) rates.set(all, rate);
    rates.set(solves, std::min(before + 1, 2.0));
}

split::Result solve_split(Context::State& state, const std::vector<split::Part>& all, const std::vector<split::Part>& chosen, const System& system,
                          const split::Reach& reach, const Options& options) {
    split::Setting setting;
    setting.parts = chosen;
    setting.host = &host_ops();
    setting.threads = state.threads;
    setting.tolerance = tolerance_of(system, options);
    setting.reach = reach;
    setting.scratch = &state.scratch;
    setting.kits = &state.kits;
    // One device couples windows of its own better than chunks, where it holds the system.
    setting.couple = chosen.size() > 1 || all.size() > 1 || !fits(chosen[0], system);
    devices::Rates& rates = state.rates();
    for (const split::Part& part : chosen) setting.rows_per_s.push_back(rates.of(rate_key(part.name, chosen, system, reach)));
    split::Result result = split::solve(system, setting);
    if (result.solved && result.coupled == (reach.width == 0)) {
        for (std::size_t k = 0; k < chosen.size(); ++k)
            if (result.rows_per_s[k] > 0) rates.saw(rate_key(chosen[k].name, chosen, system, reach), result.rows_per_s[k]);
    }
    for (const split::Part& part : all)
        if (std::none_of(chosen.begin(), chosen.end(), [&](const split::Part& other) { return other.name == part.name; }))
            result.devices.push_back({.name = part.name, .state = left_out});
    if (state.has_log())
        for (const DeviceShare& share : result.devices)
            if (!share.state.empty()) state.log("device '" + share.name + "' " + share.state);
    return result;
}

}  // namespace trifold::tridiagonal
