// SPDX-License-Identifier: BSD-3-Clause
#include "devices/rates.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/utc.hpp"
#include "devices/profile_file.hpp"
#include "trifold/version.hpp"

namespace trifold::devices {
namespace {

using Json = nlohmann::json;
constexpr const char* schema = "trifold.rates/2";
constexpr std::uintmax_t largest_file = 4 << 20;

// Whether `device` is one of the names in a key: between spaces and commas.
bool names(std::string_view key, std::string_view device) {
    for (std::size_t at = key.find(device); at != std::string_view::npos; at = key.find(device, at + 1)) {
        const auto ends = [&](std::size_t k) { return k >= key.size() || key[k] == ' ' || key[k] == ','; };
        if ((at == 0 || ends(at - 1)) && ends(at + device.size())) return true;
    }
    return false;
}

}  // namespace

std::string identity_of(std::string description) {
    constexpr std::string_view shared = " shared with the host";
    const std::size_t at = description.find(shared), comma = at == description.npos ? at : description.rfind(',', at);
    return comma == description.npos ? description : description.erase(comma, at + shared.size() - comma);
}

double Rates::of(std::string_view key) const {
    const std::lock_guard lock(mutex_);
    const auto found = rates_.find(key);
    return found == rates_.end() ? 0 : found->second;
}

void Rates::saw(std::string_view key, double per_s) {
    if (!(per_s > 0)) return;
    const double known = of(key);
    set(key, known > 0 ? 2 / (1 / known + 1 / per_s) : per_s);
}

void Rates::set(std::string_view key, double value) {
    const std::lock_guard lock(mutex_);
    rates_.insert_or_assign(std::string(key), value);
}

int Rates::tally(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = tallies_.find(name);
    return found == tallies_.end() ? 0 : found->second;
}

void Rates::set_tally(const std::string& name, int count) {
    const std::lock_guard lock(mutex_);
    tallies_[name] = count;
}

std::string Rates::identify(const std::string& device, const std::string& what) {
    const std::lock_guard lock(mutex_);
    std::string& known = devices_[device];
    std::string was = known == what ? std::string() : std::move(known);
    known = what;
    if (was.empty()) return was;
    forgot_.insert(device);
    std::erase_if(rates_, [&](const auto& one) { return names(one.first, device); });
    std::erase_if(saved_, [&](const auto& one) { return names(one.first, device); });
    return was;
}

bool Rates::changed() const {
    const std::lock_guard lock(mutex_);
    return rates_ != saved_;
}

bool Rates::read(const std::string& file, const std::string& machine, Kept& kept, std::string& why) try {
    std::error_code none;
    const auto size = std::filesystem::file_size(file, none);
    if (none) return false;
    if (size > largest_file) return why = "far too large for what is kept of devices", false;
    std::ifstream stream(file, std::ios::binary);
    const Json json = Json::parse(std::string{std::istreambuf_iterator<char>(stream), {}});
    if (json.at("schema") != schema) throw std::invalid_argument("another schema");
    if (const auto version = json.at("version").get<std::string>(); version != TRIFOLD_VERSION) return why = "written by version " + version.substr(0, 32), false;
    if (json.at("machine") != machine) return why = "learnt on another machine", false;
    kept.devices = json.at("devices").get<Names>();
    for (const auto& [key, value] : json.at("rates").items()) {
        const double number = value.get<double>();
        if (!std::isfinite(number) || number < 0) throw std::invalid_argument("'" + key.substr(0, 80) + "' is no number that can be");
        kept.rates[key] = number;
    }
    return true;
} catch (const std::exception& problem) {  // the parser's own and the checks above
    why = std::string("corrupt: ") + problem.what();
    return false;
}

std::string Rates::load(const std::string& file, const std::string& machine) {
    Kept kept;
    std::string why;
    if (!read(file, machine, kept, why)) return why;
    const std::lock_guard lock(mutex_);
    rates_ = saved_ = std::move(kept.rates), devices_ = std::move(kept.devices);
    return why;
}

bool Rates::save(const std::string& file, const std::string& machine, std::string& why) {
    const std::lock_guard one_at_a_time(saving_);
    Kept kept;
    std::string ignored;
    read(file, machine, kept, ignored);
    Json json{{"schema", schema}, {"version", TRIFOLD_VERSION}, {"machine", machine}, {"date", utc_now("%Y-%m-%d")}};
    {
        const std::lock_guard lock(mutex_);
        // Of a device that is another one here, the file may speak of the one that is gone.
        std::erase_if(kept.rates, [&](const auto& one) { return std::any_of(forgot_.begin(), forgot_.end(), [&](const std::string& device) { return names(one.first, device); }); });
        for (const auto& [key, value] : rates_) {
            const auto before = saved_.find(key);
            if (before == saved_.end() || before->second != value) kept.rates[key] = value;
            else kept.rates.emplace(key, value);
        }
        for (const auto& [device, what] : devices_) kept.devices[device] = what;
        json["devices"] = kept.devices, json["rates"] = kept.rates;
        rates_ = saved_ = std::move(kept.rates);
    }
    return replace_file(file, json.dump(1) + '\n', why);
}

}  // namespace trifold::devices
