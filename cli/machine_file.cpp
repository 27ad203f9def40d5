// SPDX-License-Identifier: BSD-3-Clause
#include "machine_file.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "devices/contention.hpp"
#include "trifold/error.hpp"

namespace trifold::cli {
namespace {

using Json = nlohmann::ordered_json;
using devices::Machine;
using devices::SideBySide;

constexpr const char* schema = "trifold.machine/1";
constexpr double words_in = 4, words_out = 1;  // of a row: lower, diag, upper, rhs; x

struct Bad : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Positive, or not negative where `fallback` is given and taken.
double number(const Json& object, const char* key, double fallback = NAN) {
    if (!object.contains(key)) {
        if (std::isnan(fallback)) throw Bad(std::string("'") + key + "' is missing");
        return fallback;
    }
    if (!object[key].is_number()) throw Bad(std::string("'") + key + "' is not a number");
    const double value = object[key].get<double>();
    if (!std::isfinite(value) || value < 0 || (value == 0 && std::isnan(fallback))) throw Bad(std::string("'") + key + "' is not positive");
    return value;
}

std::string text(const Json& object, const char* key, const char* fallback = nullptr) {
    if (!object.contains(key) && fallback) return fallback;
    if (!object.contains(key) || !object[key].is_string()) throw Bad(std::string("'") + key + "' is missing, or no text");
    return object[key].get<std::string>();
}

const Json& list(const Json& object, const char* key) {
    if (!object.contains(key) || !object[key].is_array() || object[key].empty()) throw Bad(std::string("'") + key + "' is missing, or no list");
    return object[key];
}

/// Raw bytes per second of one lane and direction.
double pcie_lane(double generation) {
    constexpr double lane[] = {0.25e9, 0.5e9, 0.984615e9, 1.969231e9, 3.938462e9};
    if (generation < 1 || generation > 5 || generation != std::floor(generation)) throw Bad("'generation' of PCIe is none of 1 to 5");
    return lane[static_cast<int>(generation) - 1];
}

SideBySide device_of(const Json& json, double word) {
    SideBySide device;
    device.name = text(json, "name");
    const double moved = number(json, "words", 5) + number(json, "marshal_words", 0);
    device.rows_per_s = json.contains("mrows_per_s") ? number(json, "mrows_per_s") * 1e6 : number(json, "gb_per_s") * 1e9 / (moved * word);
    if (json.contains("pcie")) {
        device.to_bytes_per_s = device.from_bytes_per_s = pcie_lane(number(json["pcie"], "generation")) * number(json["pcie"], "lanes");
    } else if (json.contains("to_gb_per_s") || json.contains("from_gb_per_s")) {
        device.to_bytes_per_s = number(json, "to_gb_per_s") * 1e9, device.from_bytes_per_s = number(json, "from_gb_per_s") * 1e9;
    }
    const bool linked = device.to_bytes_per_s > 0;
    if (linked) device.bytes_to = words_in * word, device.bytes_from = words_out * word;
    device.both_ways = json.value("both_ways", true);
    device.host_bytes = number(json, "host_bytes", number(json, "host_words", linked ? words_in + words_out : moved) * word);
    device.turn = static_cast<int>(number(json, "turn", 0));
    device.start_s = number(json, "start_s", 0);
    device.watts = number(json, "watts", 0), device.idle_watts = number(json, "idle_watts", 0);
    return device;
}

std::uint32_t members_of(const Json& names, const Machine& machine) {
    std::uint32_t members = 0;
    for (const Json& name : names) {
        const auto at = std::find_if(machine.devices.begin(), machine.devices.end(), [&](const SideBySide& device) { return name == device.name; });
        if (at == machine.devices.end()) throw Bad("'rows' name a device " + name.dump() + " that the model '" + machine.devices.front().name + "…' lacks");
        members |= 1u << (at - machine.devices.begin());
    }
    return members;
}

/// Relative seconds of a row by the device's own memory, for those whose words and bandwidth are given; the fastest has 1.
std::vector<std::pair<std::string, double>> kernel_ratio(const Json& devices) {
    std::vector<std::pair<std::string, double>> ratio;
    double least = INFINITY;
    for (const Json& device : devices) {
        if (!device.contains("gb_per_s") || !device.contains("words")) continue;
        ratio.emplace_back(text(device, "name"), number(device, "words") / number(device, "gb_per_s"));
        least = std::min(least, ratio.back().second);
    }
    for (auto& [name, seconds] : ratio) seconds /= least;
    std::stable_sort(ratio.begin(), ratio.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    return ratio;
}

report::Operations operations_of(const Json& json) {
    report::Operations out{text(json, "kernel"), text(json, "operation"), {}, {}};
    for (const auto& [key, to] : {std::pair{"published", out.published}, {"counted", out.counted}}) {
        const Json& pair = list(json, key);
        if (pair.size() != 2 || !pair[0].is_number() || !pair[1].is_number()) throw Bad(std::string("'") + key + "' is no pair of numbers");
        to[0] = pair[0].get<double>(), to[1] = pair[1].get<double>();
    }
    return out;
}

/// "[json.exception.parse_error.101] parse error at …": the library's number says nothing to who wrote the file.
std::string without_its_number(const std::string& words) {
    const std::size_t end = words.starts_with('[') ? words.find("] ") : words.npos;
    return end == words.npos ? words : words.substr(end + 2);
}

report::MachineTable table_of(const Json& json) {
    if (text(json, "schema", "") != schema) throw Bad(std::string("'schema' is not ") + schema);
    report::MachineTable table;
    table.title = text(json, "title");
    const double word = number(json, "word_bytes", 8);
    table.rows = number(json, "rows_solved", 1e9);
    if (json.contains("operations"))
        for (const Json& one : list(json, "operations")) table.operations.push_back(operations_of(one));
    for (const Json& entry : list(json, "models")) {
        Machine machine;
        machine.host_bytes_per_s = number(entry, "host_gb_per_s") * 1e9;
        machine.base_watts = number(entry, "base_watts", 0);
        for (const Json& device : list(entry, "devices")) machine.devices.push_back(device_of(device, word));
        if (machine.devices.size() > devices::most_devices) throw Bad("a model has more than " + std::to_string(devices::most_devices) + " devices");
        report::MachineModel model{text(entry, "name"), text(entry, "why", ""), kernel_ratio(entry["devices"]), {}, {}};
        std::vector<std::uint32_t> order;
        for (std::uint32_t members = 1; members < 1u << machine.devices.size(); ++members) order.push_back(members);
        std::stable_sort(order.begin(), order.end(), [](auto a, auto b) { return std::popcount(a) < std::popcount(b); });
        for (const std::uint32_t members : order) {
            const devices::Combination found = devices::together(machine, members, table.rows);
            report::CombinationLine line;
            for (std::size_t k = 0; k < machine.devices.size(); ++k) {
                if (!(members >> k & 1)) continue;
                line.devices.push_back(machine.devices[k].name);
                line.shares.push_back(found.rows[k] / table.rows);
            }
            line.rows_per_s = table.rows / found.seconds, line.rows_per_joule = found.joules > 0 ? table.rows / found.joules : report::unknown;
            if (json.contains("rows"))
                for (const Json& row : list(json, "rows"))
                    if (members_of(list(row, "devices"), machine) == members) {
                        line.known_rows_per_s = number(row, "mrows_per_s") * 1e6;
                        if (row.contains("mrows_per_joule")) line.known_rows_per_joule = number(row, "mrows_per_joule") * 1e6;
                    }
            model.lines.push_back(std::move(line));
        }
        const bool watts = std::any_of(machine.devices.begin(), machine.devices.end(), [](const SideBySide& d) { return d.watts > 0; });
        for (const Objective objective : {Objective::time, Objective::energy, Objective::edp}) {
            if (objective != Objective::time && !watts) continue;
            const devices::Combination chosen = devices::best(machine, table.rows, objective);
            std::vector<std::string> names;
            for (std::size_t k = 0; k < machine.devices.size(); ++k)
                if (chosen.members >> k & 1) names.push_back(machine.devices[k].name);
            model.best.emplace_back(objective, std::move(names));
        }
        table.models.push_back(std::move(model));
    }
    return table;
}

}  // namespace

report::MachineTable predict_machine(const std::string& path) {
    const char* hint = "docs/algorithms/split_model.md describes the file; bench/published/oclspkt.json is one";
    errno = 0;
    std::ifstream file(path);
    const bool nothing = !file || file.peek() == std::ifstream::traits_type::eof();
    if (nothing && errno) throw Error(ErrorCode::bad_input, path, std::string("cannot be read: ") + std::strerror(errno), "check the name and the folder");
    if (nothing) throw Error(ErrorCode::bad_input, path, "is empty", hint);
    try {
        return table_of(Json::parse(file));
    } catch (const Json::exception& error) {
        throw Error(ErrorCode::bad_input, path, "is no such JSON: " + without_its_number(error.what()), hint);
    } catch (const Bad& error) {
        throw Error(ErrorCode::bad_input, path, error.what(), hint);
    } catch (const Error& error) {
        throw Error(ErrorCode::bad_input, path, error.what(), hint);
    }
}

}  // namespace trifold::cli
