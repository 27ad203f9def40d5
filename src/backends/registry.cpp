// SPDX-License-Identifier: BSD-3-Clause
#include "backends/registry.hpp"

#include <algorithm>
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
};

template <const Device& (*device)()>
std::span<const Device> alone() {
    return {&device(), 1};
}

constexpr Line lines[] = {
#define TRIFOLD_DEVICE(name) {#name, false, alone<name##_device>},
#define TRIFOLD_DEVICES(name) {#name, true, name##_devices},
#define TRIFOLD_DEVICES_AND_PARTS(name) {#name, true, name##_devices, name##_number, ":0.0"},
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

}  // namespace

std::span<const Device* const> registered_devices() {
    static const std::vector<const Device*> all = collect(true);
    return all;
}

std::span<const Device* const> host_devices() noexcept {
    static const std::vector<const Device*> all = collect(false);
    return all;
}

const Device& device_at(int index) { return lines[index / numbers_per_line].devices()[static_cast<std::size_t>(index % numbers_per_line)]; }

int find_device(std::string_view name) {
    for (int line = 0; line < static_cast<int>(std::size(lines)); ++line) {
        const Line& l = lines[line];
        if (!l.numbered && name == l.name) return usable(line, 0, l.devices()[0]);
        if (l.numbered && name.starts_with(l.name) && name.substr(l.name.size()).starts_with(':') && is_number(name.substr(l.name.size() + 1), l.number))
            return find_numbered(line, name);
    }
    std::vector<std::string> known;
    for (const Line& line : lines) known.push_back(std::string(line.name) + (line.numbered ? line.example : ""));
    const std::vector<std::string_view> names(known.begin(), known.end());
    throw Error(ErrorCode::usage, "device", "unknown device '" + std::string(name) + "'", nearest_hint(name, names));
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
