// SPDX-License-Identifier: BSD-3-Clause
#include "api/split_solve.hpp"

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

std::string key_of(const std::vector<split::Part>& parts, std::size_t which, const System& system) {
    std::string key = parts[which].name + " of ";
    for (const split::Part& part : parts) key += part.name + ",";
    return key + (system.dtype == DType::f32 ? "f32" : "f64");
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

split::Result solve_split(Context::State& state, const std::vector<split::Part>& parts, const System& system, const Options& options) {
    split::Setting setting;
    setting.parts = parts;
    setting.host = &tridiagonal_ops(device_at(find_device("cpu")));
    setting.threads = state.threads;
    setting.tolerance = options.tolerance > 0 ? options.tolerance : unit_roundoff(system.dtype);
    setting.scratch = &state.scratch;
    setting.kits = &state.kits;
    for (std::size_t k = 0; k < parts.size(); ++k) setting.rows_per_s.push_back(state.rates.of(key_of(parts, k, system)));
    split::Result result = split::solve(system, setting);
    if (result.solved)
        for (std::size_t k = 0; k < parts.size(); ++k) state.rates.saw(key_of(parts, k, system), result.rows_per_s[k]);
    if (state.has_log())
        for (const DeviceShare& share : result.devices)
            if (!share.state.empty()) state.log("device '" + share.name + "' " + share.state);
    return result;
}

}  // namespace trifold::tridiagonal
