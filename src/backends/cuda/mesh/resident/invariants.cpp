// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/mesh/resident/invariants.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

namespace trifold::cuda::resident {
namespace {

enum class Time { any, once, always };  ///< any: numbers, parameters and places, as cheap to have anew as to keep

struct Value {
    std::string text;
    Time time = Time::any;
    bool costly = false;  ///< divisions or functions of what fields hold are in it
    std::string whole{};  ///< the text without names
};

struct NotCut : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Cutter {
public:
    Cutter(std::string_view text, const std::function<bool(int)>& changes, Keep keep) : text_(text), changes_(changes), keep_(keep) { next(); }

    Split cut() {
        take("{");
        while (word_ != "}") statement();
        next();
        if (!word_.empty() || !done_) throw NotCut("no body");
        Split split{"{" + once_, "{" + rest_ + "}", 0, {}};
        bool saves = false;
        for (std::size_t k = 0; k < kept_.size(); ++k) {
            split.once += " out(" + std::to_string(k) + ") = " + kept_[k].text + ";";
            split.values.push_back(kept_[k].whole);
            saves = saves || kept_[k].costly;
        }
        split.once += "}";
        if (saves) split.kept = static_cast<int>(kept_.size());
        return split;
    }

private:
    static bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

    // The next word or sign becomes word_.
    void next() {
        while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
        const std::size_t from = at_;
        if (at_ < text_.size() && (in_name(text_[at_]) || text_[at_] == '.'))
            while (at_ < text_.size() && (in_name(text_[at_]) || text_[at_] == '.')) ++at_;
        else if (at_ < text_.size()) ++at_;
        word_ = text_.substr(from, at_ - from);
    }
    void take(std::string_view expected) {
        if (word_ != expected) throw NotCut("something else");
        next();
    }
    bool takes(std::string_view sign) {
        if (word_ != sign) return false;
        next();
        return true;
    }
    std::string name() {
        const std::string found(word_);
        if (found.empty() || !(std::isalpha(static_cast<unsigned char>(found[0])) || found[0] == '_')) throw NotCut("no name");
        next();
        return found;
    }

    void statement() {
        if (takes("const") || word_ == "real") {
            take("real");
            do {
                const std::string own = name();
                take("=");
                const Value value = sum();
                if (!names_.try_emplace(own, Value{own, value.time, value.costly, value.whole}).second) throw NotCut("a second value of one name");
                const std::string text = " real " + own + " = " + value.text + ";";
                if (value.time != Time::always) once_ += text;
                if (value.time != Time::once) rest_ += text;
            } while (takes(","));
        } else {
            take("out"), take("("), take("0"), take(")"), take("=");
            if (std::exchange(done_, true)) throw NotCut("a second result");
            rest_ += " out(0) = " + always(sum()).text + ";";
        }
        take(";");
    }

    Value sum() {
        Value value = product();
        while (word_ == "+" || word_ == "-") {
            const std::string sign(word_);
            next();
            value = both(value, sign, product());
        }
        return value;
    }
    Value product() {
        Value value = factor();
        while (word_ == "*" || word_ == "/") {
            const std::string sign(word_);
            next();
            value = both(value, sign, factor());
        }
        return value;
    }
    Value factor() {
        if (takes("-")) {
            const Value value = factor();
            return {"(-" + value.text + ")", value.time, value.costly, "(-" + value.whole + ")"};
        }
        if (takes("(")) {
            const Value value = sum();
            take(")");
            return value;
        }
        if (!word_.empty() && std::isdigit(static_cast<unsigned char>(word_[0]))) return number(false);
        const std::string called = name();
        if (word_ == "(") return call(called);
        if (const auto known = names_.find(called); known != names_.end()) return known->second;
        if (called == "step") return {called, Time::always, false, called};
        for (const char* const place : {"x", "y", "z", "mesh"})
            if (called == place) return {called, Time::any, false, called};
        throw NotCut("a name of somewhere else");
    }

    // Fractions that are not of the type `real` would be computed with more bits than are kept.
    Value number(bool fraction_too) {
        const std::string digits(word_);
        for (const char c : digits)
            if (!std::isdigit(static_cast<unsigned char>(c)) && !(fraction_too && c == '.')) throw NotCut("a number of another type");
        next();
        return {digits, Time::any, false, digits};
    }

    Value call(const std::string& called) {
        take("(");
        if (called == "at" || called == "p") {
            std::string text = called + "(";
            int field = -1;
            for (; word_ != ")"; next()) {
                if (word_.empty()) throw NotCut("no end");
                if (field < 0 && std::isdigit(static_cast<unsigned char>(word_[0]))) field = std::stoi(std::string(word_));
                text += word_;
            }
            take(")");
            text += ")";
            return {text, called == "p" ? Time::any : changes_(field) ? Time::always : Time::once, false, text};
        }
        if (called == "real" && !word_.empty() && std::isdigit(static_cast<unsigned char>(word_[0])) && word_.find('.') != std::string_view::npos) {
            const Value value = number(true);
            take(")");
            return {"real(" + value.text + ")", Time::any, false, "real(" + value.text + ")"};
        }
        static constexpr const char* known[] = {"real", "mad", "sqrt", "fabs", "exp", "log", "pow", "sin", "cos", "tanh", "fmin", "fmax"};
        if (std::none_of(std::begin(known), std::end(known), [&](const char* one) { return called == one; })) throw NotCut("a function of somewhere else");
        // What arguments keep is kept in the order of the text; so whether one of them changes is found out first.
        const bool ahead = std::exchange(looks_ahead_, true);
        const auto begin = std::pair(at_, word_);
        const std::vector<Value> kept = kept_;
        std::vector<Value> arguments;
        const auto read = [&](bool keeps) {
            arguments.clear();
            do arguments.push_back(keeps ? always(sum()) : sum());
            while (takes(","));
        };
        read(false);
        Value value{called + "(", Time::any, called != "mad", called + "("};
        for (const Value& one : arguments) value.time = std::max(value.time, one.time), value.costly = value.costly || one.costly;
        looks_ahead_ = ahead;
        if (!ahead && value.time == Time::always) {
            std::tie(at_, word_) = begin, kept_ = kept;
            read(true);
        }
        take(")");
        for (std::size_t k = 0; k < arguments.size(); ++k) value.text += (k ? ", " : "") + arguments[k].text, value.whole += (k ? ", " : "") + arguments[k].whole;
        value.text += ")", value.whole += ")";
        return value;
    }

    Value both(const Value& a, const std::string& sign, const Value& b) {
        const Time time = std::max(a.time, b.time);
        if (sign == "/" && a.time == Time::always && b.time == Time::once) return both(a, "*", {"(1 / " + b.text + ")", Time::once, true, "(1 / " + b.whole + ")"});
        const auto text = [&](const Value& one) { return time == Time::always ? always(one).text : one.text; };
        const std::string left = text(a);
        return {"(" + left + " " + sign + " " + text(b) + ")", time, a.costly || b.costly || (sign == "/" && b.time == Time::once), "(" + a.whole + " " + sign + " " + b.whole + ")"};
    }

    // What is computed once is kept where it meets what is not.
    Value always(const Value& value) {
        if (value.time != Time::once) return value;
        if (keep_ == Keep::costly && !value.costly) return {value.whole, Time::always, false, value.whole};
        std::size_t k = 0;
        while (k < kept_.size() && kept_[k].text != value.text) ++k;
        if (k == kept_.size()) kept_.push_back(value);
        return {"trifold_kept(" + std::to_string(k) + ")", Time::always, true, value.whole};
    }

    std::string_view text_, word_;
    std::size_t at_ = 0;
    const std::function<bool(int)>& changes_;
    Keep keep_;
    std::map<std::string, Value> names_;
    std::vector<Value> kept_;
    std::string once_, rest_;
    bool done_ = false, looks_ahead_ = false;  ///< only times matter: what is kept is forgotten again
};

}  // namespace

Split split_invariants(std::string_view source, const std::function<bool(int)>& changes, Keep keep) {
    try {
        return Cutter(source, changes, keep).cut();
    } catch (const NotCut&) {
        return {};
    }
}

namespace {

/// A value without names as the next point along an axis has it; nothing where it depends on the place.
std::string of_next_point(const std::string& value, int axis) {
    std::string text;
    for (std::size_t i = 0; i < value.size();) {
        const bool word = std::isalnum(static_cast<unsigned char>(value[i])) || value[i] == '_';
        std::size_t end = i + 1;
        while (word && end < value.size() && (std::isalnum(static_cast<unsigned char>(value[end])) || value[end] == '_')) ++end;
        const std::string one = value.substr(i, end - i);
        if (one == "x" || one == "y" || one == "z") return {};
        text += one, i = end;
        if (one != "at") continue;
        for (int argument = 0; argument < 4; ++argument) {
            const std::size_t until = value.find(argument < 3 ? ',' : ')', i + 1);
            text += value[i] + std::to_string(std::stoi(value.substr(i + 1, until - i - 1)) + (argument == axis + 1)), i = until;
        }
    }
    return text;
}

}  // namespace

std::vector<Place> places_of(const Split& split) {
    std::vector<Place> places;
    int arrays = 0;
    for (std::size_t k = 0; k < split.values.size(); ++k) {
        Place own{-1, -1};
        for (std::size_t other = 0; own.array < 0 && other < split.values.size(); ++other)
            for (int axis = 0; own.array < 0 && axis < 3; ++axis)
                if (other < k && places[other].axis < 0 && of_next_point(split.values[other], axis) == split.values[k]) own = {places[other].array, axis};
        if (own.array < 0) own.array = arrays++;
        places.push_back(own);
    }
    return places;
}

namespace {

using Words = std::vector<std::string>;

/// Words and signs; a look at a field is one word, as the point `back` along the axis has it.
Words words_of(std::string_view text, int axis, int back) {
    Words words;
    for (std::size_t i = 0; i < text.size();) {
        const auto in_word = [&](std::size_t k) { return k < text.size() && (std::isalnum(static_cast<unsigned char>(text[k])) || text[k] == '_' || text[k] == '.'); };
        if (std::isspace(static_cast<unsigned char>(text[i]))) {
            ++i;
            continue;
        }
        std::size_t end = i + 1;
        while (in_word(i) && in_word(end)) ++end;
        std::string word(text.substr(i, end - i));
        i = end;
        if (word == "at") {
            const std::size_t close = text.find(')', i);
            if (close == std::string_view::npos) return {};
            std::array<int, 4> numbers{};
            std::size_t from = i + 1;
            for (int& number : numbers) {
                number = std::atoi(std::string(text.substr(from, close - from)).c_str());
                from = std::min(text.find(',', from), close) + 1;
            }
            numbers[static_cast<std::size_t>(axis + 1)] -= back;
            for (const int number : numbers) word.append(1, ' ').append(std::to_string(number));
            i = close + 1;
        }
        words.push_back(word);
    }
    return words;
}

/// What out(which) is made of, names replaced by what they stand for.
Words parts_of_result(const Words& all, const std::string& which) {
    std::map<std::string, Words> names;
    for (auto at = all.begin(); at != all.end();) {
        const auto end = std::find(at, all.end(), ";");
        while (at != end && (*at == "{" || *at == "const" || *at == "real")) ++at;
        while (at != end) {
            const auto assigned = std::find(at, end, "=");
            if (assigned == end) break;
            const std::string name = *at == "out" && assigned - at > 2 ? "out " + at[2] : *at;
            Words value;
            int depth = 0;
            for (at = assigned + 1; at != end && (depth > 0 || *at != ","); ++at) {
                depth += (*at == "(") - (*at == ")");
                if (const auto known = names.find(*at); known != names.end()) value.insert(value.end(), known->second.begin(), known->second.end());
                else value.push_back(*at);
            }
            names[name] = value;
            if (at != end) ++at;
        }
        at = end == all.end() ? end : end + 1;
    }
    return names["out " + which];
}

}  // namespace

bool looks_symmetric(std::string_view source, int axis) {
    Words low = parts_of_result(words_of(source, axis, 0), "0"), high = parts_of_result(words_of(source, axis, 1), "2");
    const char* const places[] = {"x", "y", "z"};
    for (const std::string& word : low)
        if (word == "out" || word == places[axis]) return false;
    std::sort(low.begin(), low.end()), std::sort(high.begin(), high.end());
    return !low.empty() && low == high;
}

}  // namespace trifold::cuda::resident
