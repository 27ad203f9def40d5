// SPDX-License-Identifier: BSD-3-Clause
// What a suite leaves behind: rows of named values, and the machine that they were measured on.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace trifold::bench {

using Value = std::variant<double, std::string, bool>;

/// One line of a suite, keys in the order in which they were set. NaN is written as null.
struct Row {
    std::vector<std::pair<std::string, Value>> values;

    Row& set(std::string key, double value) { return put(std::move(key), value); }
    Row& set(std::string key, std::string value) { return put(std::move(key), std::move(value)); }
    Row& set(std::string key, const char* value) { return put(std::move(key), std::string(value)); }
    Row& set(std::string key, bool value) { return put(std::move(key), value); }
    double number(const std::string& key) const;  ///< NaN where absent
    std::string text(const std::string& key) const;

private:
    Row& put(std::string key, Value value);
};

struct Record {
    std::string suite, title;
    std::vector<Row> rows;
    std::vector<std::string> notes;  ///< what was left out and why
    bool reduced = false;            ///< smaller or shorter than the suite's full size
    double seconds = 0;              ///< that the suite took
    double load_before = 0;

    void note(const std::string& text);  ///< once
};

/// folder/<suite>.json, schema trifold.bench/1, written beside and renamed. Throws Error(bad_input) where it cannot be.
void write_record(const Record& record, const std::string& folder);

}  // namespace trifold::bench
