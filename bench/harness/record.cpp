// SPDX-License-Identifier: BSD-3-Clause
#include "bench/harness/record.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "bench/harness/machine.hpp"
#include "io/atomic_file.hpp"
#include "trifold/error.hpp"

namespace trifold::bench {

Row& Row::put(std::string key, Value value) {
    for (auto& [known, held] : values)
        if (known == key) return held = std::move(value), *this;
    values.emplace_back(std::move(key), std::move(value));
    return *this;
}

double Row::number(const std::string& key) const {
    for (const auto& [known, held] : values)
        if (known == key && std::holds_alternative<double>(held)) return std::get<double>(held);
    return std::numeric_limits<double>::quiet_NaN();
}

std::string Row::text(const std::string& key) const {
    for (const auto& [known, held] : values)
        if (known == key && std::holds_alternative<std::string>(held)) return std::get<std::string>(held);
    return {};
}

using Json = nlohmann::ordered_json;

static Json json_of(const Value& value) {
    if (const double* number = std::get_if<double>(&value)) return std::isfinite(*number) ? Json(*number) : Json(nullptr);
    if (const bool* flag = std::get_if<bool>(&value)) return *flag;
    return std::get<std::string>(value);
}

void Record::note(const std::string& text) {
    if (std::find(notes.begin(), notes.end(), text) == notes.end()) notes.push_back(text);
}

void write_record(const Record& record, const std::string& folder) {
    Json json;
    json["schema"] = "trifold.bench/1";
    json["suite"] = record.suite;
    json["title"] = record.title;
    for (const auto& [key, value] : machine_facts()) json["machine"][key] = value;
    json["load_before"] = record.load_before;
    json["reduced"] = record.reduced;
    json["seconds"] = record.seconds;
    json["notes"] = record.notes;
    json["rows"] = Json::array();
    for (const Row& row : record.rows) {
        Json line = Json::object();
        for (const auto& [key, value] : row.values) line[key] = json_of(value);
        json["rows"].push_back(std::move(line));
    }
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) throw Error(ErrorCode::bad_input, folder, "cannot be made: " + error.message(), "give another folder with --out");
    const std::string text = json.dump(1) + "\n";
    io::AtomicFile file(folder + "/" + record.suite + ".json");
    file.write(text.data(), text.size());
    file.commit();
}

}  // namespace trifold::bench
