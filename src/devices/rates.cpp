// SPDX-License-Identifier: BSD-3-Clause
#include "devices/rates.hpp"

#include <cmath>
#include <exception>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "devices/profile_file.hpp"
#include "trifold/version.hpp"

namespace trifold::devices {
namespace {

using Json = nlohmann::json;
constexpr const char* schema = "trifold.rates/1";

}  // namespace

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

bool Rates::changed() const {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, value] : rates_) {
        const auto kept = saved_.find(key);
        if (kept == saved_.end() || !(std::abs(value - kept->second) <= 0.1 * std::abs(kept->second))) return true;
    }
    return false;
}

void Rates::load(const std::string& file, const std::string& machine) try {
    std::ifstream stream(file, std::ios::binary);
    if (!stream) return;
    const Json json = Json::parse(std::string{std::istreambuf_iterator<char>(stream), {}});
    if (json.at("schema") != schema || json.at("version") != TRIFOLD_VERSION || json.at("machine") != machine) return;
    Map read;
    for (const auto& [key, value] : json.at("rates").items()) read[key] = value.get<double>();
    const std::lock_guard lock(mutex_);
    rates_ = saved_ = std::move(read);
} catch (const std::exception&) {  // corrupt: learnt anew
}

bool Rates::save(const std::string& file, const std::string& machine, std::string& why) {
    Json json{{"schema", schema}, {"version", TRIFOLD_VERSION}, {"machine", machine}};
    {
        const std::lock_guard lock(mutex_);
        json["rates"] = Json(rates_);
        saved_ = rates_;
    }
    return replace_file(file, json.dump(1) + '\n', why);
}

}  // namespace trifold::devices
