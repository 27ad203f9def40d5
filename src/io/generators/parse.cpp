// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "base/nearest.hpp"
#include "io/generators/generator.hpp"
#include "trifold/error.hpp"

namespace trifold::io {
namespace {

enum { rows, systems, axis, seed };
constexpr double most_rows = 0x1p53;
constexpr Parameter common[] = {
    {"rows", 1000, 1, most_rows, true, "rows of each system"},
    {"systems", 1, 1, most_rows, true, "systems, each contiguous"},
    {"axis", -1, -5, 4, true, "axis of shape that is solved; negative counts from the last"},
    {"seed", 1, 0, most_rows, true, "of the random numbers"},
};
constexpr std::string_view storage_names[] = {"own", "shared", "scalar"};

std::string shown(double value) {
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, value).ptr;
    return {text, end};
}

// Text of any length and kind may arrive here, and goes into a message.
std::string shown(std::string_view text) {
    std::string result;
    for (const char c : text.substr(0, 48)) result += static_cast<unsigned char>(c) < ' ' || c == 127 ? '?' : c;
    return result + (text.size() > 48 ? "..." : "");
}

class Parser {
public:
    explicit Parser(std::string_view text) { spec_.text = std::string(text); }

    GeneratorSpec parse() {
        std::string_view text = spec_.text;
        if (text.starts_with("gen:")) text.remove_prefix(4);
        const std::size_t question = text.find('?');
        settle_kind(text.substr(0, question));
        for (std::string_view rest = question == std::string_view::npos ? "" : text.substr(question + 1);
             !rest.empty();) {
            const std::size_t end = rest.find('&');
            pair(rest.substr(0, end));
            rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
        }
        return finish();
    }

private:
    [[noreturn]] void wrong(const std::string& what, const std::string& hint) const {
        throw Error(ErrorCode::usage, where_, what, hint);
    }

    void settle_kind(std::string_view name) {
        spec_.kind = find_generator(name);
        if (!spec_.kind && find_generator(name.substr(0, name.find('&'))))
            throw Error(ErrorCode::usage, "gen:" + shown(name), "no generator has this name", "the first parameter follows a '?'");
        if (!spec_.kind) {
            std::vector<std::string_view> known;
            for (const GeneratorKind* kind : generator_kinds()) known.push_back(kind->name);
            throw Error(ErrorCode::usage, "gen:" + shown(name),
                        name.empty() ? "no generator named" : "no generator has this name", nearest_hint(name, known));
        }
        where_ = "gen:" + std::string(name);
        for (std::size_t k = 0; k < spec_.kind->parameters.size(); ++k)
            spec_.values[k] = spec_.kind->parameters[k].value;
        for (std::size_t k = 0; k < std::size(common); ++k) common_[k] = common[k].value;
    }

    void pair(std::string_view text) {
        const std::size_t equals = text.find('=');
        if (equals == std::string_view::npos)
            wrong("'" + shown(text) + "' is not key=value", "write " + where_ + "?key=value&key=value");
        const std::string_view key = text.substr(0, equals), value = text.substr(equals + 1);
        for (const std::string& before : seen_)
            if (before == key) wrong("parameter '" + shown(key) + "' is given twice", "give it once");
        const std::span<const Parameter> own = spec_.kind->parameters;
        for (std::size_t k = 0; k < own.size(); ++k)
            if (own[k].name == key) spec_.values[k] = number(own[k], value);
        for (std::size_t k = 0; k < std::size(common); ++k)
            if (common[k].name == key) common_[k] = number(common[k], value);
        if (key == "shape") settle_shape(value);
        if (key == "matrix") settle_storage(value);
        const std::vector<std::string_view> known = known_keys();
        if (std::find(known.begin(), known.end(), key) == known.end())
            wrong("parameter '" + shown(key) + "' is not known", nearest_hint(key, known));
        seen_.emplace_back(key);
    }

    std::vector<std::string_view> known_keys() const {
        std::vector<std::string_view> known;
        for (const Parameter& parameter : spec_.kind->parameters) known.push_back(parameter.name);
        for (const Parameter& parameter : common) known.push_back(parameter.name);
        known.insert(known.end(), {"shape", "matrix"});
        return known;
    }

    double number(const Parameter& parameter, std::string_view text) const {
        const std::string what = "parameter " + std::string(parameter.name) + " = '" + shown(text) + "' ";
        const std::string range = (parameter.whole ? "an integer from " : "a number from ") + shown(parameter.least) +
                                  " to " + shown(parameter.most);
        double value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc::result_out_of_range) wrong(what + "is out of range", "give " + range);
        if (error != std::errc{} || end != text.data() + text.size()) wrong(what + "is not a number", "give " + range);
        if (!(value >= parameter.least && value <= parameter.most)) wrong(what + "is out of range", "give " + range);
        if (parameter.whole && value != std::floor(value)) wrong(what + "is not an integer", "give " + range);
        return value;
    }

    void settle_shape(std::string_view text) {
        const std::string hint = "write 1 to 5 extents, for example shape=512x512x512";
        while (true) {
            const std::size_t end = text.find('x');
            static constexpr Parameter extent{"shape", 1, 1, most_rows, true, ""};
            if (text.substr(0, end).empty() || spec_.extents.size() == max_batch_dims + 1)
                wrong("parameter shape is not a list of extents", hint);
            spec_.extents.push_back(static_cast<std::int64_t>(number(extent, text.substr(0, end))));
            if (end == std::string_view::npos) return;
            text.remove_prefix(end + 1);
        }
    }

    void settle_storage(std::string_view text) {
        for (std::size_t k = 0; k < std::size(storage_names); ++k)
            if (storage_names[k] == text) return void(spec_.matrix = static_cast<MatrixStorage>(k));
        wrong("parameter matrix = '" + shown(text) + "' is not known", nearest_hint(text, storage_names));
    }

    bool given(std::string_view key) const { return std::find(seen_.begin(), seen_.end(), key) != seen_.end(); }

    GeneratorSpec finish() {
        spec_.seed = static_cast<std::uint64_t>(common_[seed]);
        spec_.axis = static_cast<int>(common_[axis]);
        spec_.axis_given = given("axis");
        if (given("shape")) {
            if (given("rows") || given("systems"))
                wrong("both shape and rows or systems are given", "shape and axis say it all");
        } else {
            if (given("axis")) wrong("axis is given without shape", "add shape=, or leave axis out");
            if (common_[systems] > 1) spec_.extents.push_back(static_cast<std::int64_t>(common_[systems]));
            spec_.extents.push_back(static_cast<std::int64_t>(common_[rows]));
        }
        const int dims = static_cast<int>(spec_.extents.size());
        if (spec_.axis < -dims || spec_.axis >= dims)
            wrong("axis " + std::to_string(spec_.axis) + " of a shape of " + std::to_string(dims) + " extents",
                  "use an axis from " + std::to_string(-dims) + " to " + std::to_string(dims - 1));
        if (spec_.matrix == MatrixStorage::scalar && !spec_.kind->constant)
            wrong("matrix=scalar, but the rows of this generator differ", "use matrix=shared or matrix=own");
        if (spec_.kind->refuses)
            if (const char* why = spec_.kind->refuses(spec_.values)) wrong(why, "choose another value");
        const Shape shape{DType::f64, spec_.extents, false};
        if (!shape.countable())
            wrong("the shape " + shape.text() + " has more bytes than 63 bits can count", "use fewer rows or systems");
        return std::move(spec_);
    }

    GeneratorSpec spec_;
    std::string where_;
    std::array<double, std::size(common)> common_{};
    std::vector<std::string> seen_;
};

}  // namespace

std::span<const Parameter> common_parameters() {
    return common;
}

GeneratorSpec parse_generator(std::string_view text) {
    return Parser(text).parse();
}

}  // namespace trifold::io
