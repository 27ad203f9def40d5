// SPDX-License-Identifier: BSD-3-Clause
#include "backends/registry.hpp"

#include <algorithm>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "base/nearest.hpp"
#include "trifold/error.hpp"

namespace trifold {

#define TRIFOLD_DEVICE(name) const Device& name##_device();
#define TRIFOLD_DEVICES(name) std::span<const Device> name##_devices();
#define TRIFOLD_DEVICES_AND_PARTS(name) \
    std::span<const Device> name##_devices(); \
    int name##_number(std::string_view device, std::string& why);
#include "backends/backends.def"
#undef TRIFOLD_DEVICE
#undef TRIFOLD_DEVICES
#undef TRIFOLD_DEVICES_AND_PARTS

namespace {

struct Line {
    std::string_view name;
    bool numbered;
    std::span<const Device> (*devices)();
    int (*number)(std::string_view device, std::string& why) = nullptr;
    const char* example = ":0";
    bool compiles = false;
};

template <const Device& (*device)()>
std::span<const Device> alone() {
    return {&device(), 1};
}

constexpr Line lines[] = {
#define TRIFOLD_DEVICE(name) {#name, false, alone<name##_device>},
#define TRIFOLD_DEVICES(name) {#name, true, name##_devices},
#define TRIFOLD_DEVICES_AND_PARTS(name) {#name, true, name##_devices, name##_number, ":0.0", true},
#include "backends/backends.def"
#undef TRIFOLD_DEVICE
#undef TRIFOLD_DEVICES
#undef TRIFOLD_DEVICES_AND_PARTS
};

// An index is line and number, so that finding one device asks nothing of the others.
constexpr int numbers_per_line = 1 << 12;

std::vector<const Device*> collect(bool numbered_too) {
    std::vector<const Device*> found;
    for (const Line& line : lines)
        if (numbered_too || !line.numbered)
            for (const Device& device : line.devices()) found.push_back(&device);
    return found;
}

// What follows the colon: a number, or numbers with '.' and '/' between them where devices have parts.
bool is_number(std::string_view text, bool parts) {
    return !text.empty() && std::ranges::all_of(text, [parts](char c) { return (c >= '0' && c <= '9') || (parts && (c == '.' || c == '/')); });
}

int usable(int line, int number, const Device& device) {
    if (const char* why = why_unavailable(device)) throw Error(ErrorCode::device_unavailable, "device '" + std::string(device.name) + "'", why);
    return line * numbers_per_line + number;
}

int find_numbered(int line, std::string_view name) {
    const auto devices = lines[line].devices();
    for (std::size_t number = 0; number < devices.size(); ++number)
        if (name == devices[number].name) return usable(line, static_cast<int>(number), devices[number]);
    const std::string where = "device '" + std::string(name) + "'";
    if (const char* why = why_unavailable(devices[0]); why && devices.size() == 1) throw Error(ErrorCode::device_unavailable, where, why);
    if (lines[line].number) {
        std::string why;
        const int number = lines[line].number(name, why);
        if (number >= 0) return usable(line, number, lines[line].devices()[static_cast<std::size_t>(number)]);
        if (!why.empty()) throw Error(ErrorCode::device_unavailable, where, why);
    }
    std::string there = devices[0].name;
    for (std::size_t number = 1; number < devices.size(); ++number) there += std::string(", ") + devices[number].name;
    throw Error(ErrorCode::device_unavailable, where, "there is no such device on this machine", "there is " + there);
}

// Devices that are named together, made when they are. A device stays where it is.
class DeviceSets {
public:
    const Device& at(int number) {
        const std::lock_guard lock(mutex_);
        return sets_[static_cast<std::size_t>(number)].device;
    }

    int number(const std::vector<const Device*>& parts) {
        std::string name;
        for (const Device* part : parts) (name.empty() ? name : name += ',') += part->name;
        const std::lock_guard lock(mutex_);
        for (std::size_t k = 0; k < sets_.size(); ++k)
            if (sets_[k].name == name) return static_cast<int>(k);
        Set& set = sets_.emplace_back();
        set.name = name;
        set.parts = parts;
        set.device.name = set.name.c_str();
        set.device.cells = lines[0].devices()[0].cells;
        set.device.parts = set.parts;
        return static_cast<int>(sets_.size()) - 1;
    }

private:
    struct Set {
        std::string name;
        std::vector<const Device*> parts;
        Device device{};
    };
    std::mutex mutex_;
    std::deque<Set> sets_;
};

DeviceSets& device_sets() {
    static DeviceSets all;
    return all;
}

constexpr int sets_line = static_cast<int>(std::size(lines));

std::vector<const Device*> all_that_help() {
    std::vector<const Device*> out{&lines[0].devices()[0]};
    for (const Line& line : lines) {
        if (!line.numbered || (line.number && out.size() > 1)) continue;
        for (const Device& device : line.devices())
            if (device.runtime && !device.modelled && !why_unavailable(device)) out.push_back(&device);
    }
    return out;
}

int find_set(std::string_view name) {
    std::vector<const Device*> parts;
    if (name == "all") parts = all_that_help();
    else
        for (std::string_view rest = name; !rest.empty();) {
            const std::size_t comma = std::min(rest.find(','), rest.size());
            const std::string_view one = rest.substr(0, comma);
            if (one.empty() || one == "all" || comma + 1 == rest.size())
                throw Error(ErrorCode::usage, "device", "'" + std::string(name) + "' is no list of devices", "for example: cpu,cuda:0");
            parts.push_back(&device_at(find_device(one)));
            if (std::count(parts.begin(), parts.end(), parts.back()) > 1)
                throw Error(ErrorCode::usage, "device", "'" + std::string(one) + "' is named twice in '" + std::string(name) + "'");
            rest.remove_prefix(std::min(comma + 1, rest.size()));
        }
    if (parts.size() == 1) return find_device(parts[0]->name);
    return sets_line * numbers_per_line + device_sets().number(parts);
}

}  // namespace

std::span<const Device* const> registered_devices() {
    static const std::vector<const Device*> all = collect(true);
    return all;
}

std::span<const Device* const> host_devices() noexcept {
    static const std::vector<const Device*> all = collect(false);
    return all;
}

const Device& device_at(int index) {
    const int line = index / numbers_per_line, number = index % numbers_per_line;
    return line == sets_line ? device_sets().at(number) : lines[line].devices()[static_cast<std::size_t>(number)];
}

bool compiles_when_needed(std::string_view device) noexcept {
    return std::any_of(std::begin(lines), std::end(lines), [&](const Line& line) { return line.compiles && device.starts_with(line.name) && device.substr(line.name.size()).starts_with(':'); });
}

int find_device(std::string_view name) {
    if (name == "all" || name.find(',') != std::string_view::npos) return find_set(name);
    for (int line = 0; line < static_cast<int>(std::size(lines)); ++line) {
        const Line& l = lines[line];
        if (!l.numbered && name == l.name) return usable(line, 0, l.devices()[0]);
        if (l.numbered && name.starts_with(l.name) && name.substr(l.name.size()).starts_with(':') && is_number(name.substr(l.name.size() + 1), l.number))
            return find_numbered(line, name);
    }
    std::vector<std::string> known;
    for (const Line& line : lines) known.push_back(std::string(line.name) + (line.numbered ? line.example : ""));
    const std::vector<std::string_view> names(known.begin(), known.end());
    std::string hint = nearest_hint(name, names);
    if (name.starts_with("gpu") || name.starts_with("GPU")) hint = "GPUs are called cuda:N, or opencl:P.D; " + hint.substr(hint.find("known:"));
    throw Error(ErrorCode::usage, "device", "unknown device '" + std::string(name) + "'", hint);
}

const Cell& find_cell(const Device& device, std::string_view family) noexcept {
    static const Cell none{"", CellKind::absent, nullptr, "the device has no cell for this family"};
    for (const Cell& cell : device.cells) {
        if (family != cell.family) continue;
        if (cell.kind != CellKind::delegated) return cell;
        for (const Device* other : host_devices())
            if (std::string_view(other->name) == cell.note)
                for (const Cell& target : other->cells)
                    if (family == target.family && target.kind == CellKind::native) return target;
    }
    return none;
}

}  // namespace trifold
