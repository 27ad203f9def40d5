// SPDX-License-Identifier: BSD-3-Clause
#include "problems/mesh/linear.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <string>
#include <string_view>

namespace trifold::mesh {
namespace {

using Terms = std::vector<Term>;

// A number and a sum of values.
struct Sum {
    double number = 0;
    Terms terms;
    bool integer = false;  ///< a number that C++ divides as an integer

    void add(const Sum& other, double times) {
        number += times * other.number;
        integer = integer && other.integer;
        for (Term term : other.terms) {
            term.coefficient *= times;
            const auto same = [&](const Term& t) { return t.field == term.field && t.dx == term.dx && t.dy == term.dy && t.dz == term.dz; };
            if (const auto found = std::find_if(terms.begin(), terms.end(), same); found != terms.end()) found->coefficient += term.coefficient;
            else terms.push_back(term);
        }
    }

    void scale(double by) {
        number *= by;
        for (Term& term : terms) term.coefficient *= by;
    }
};

// { [real name = sum, …;]… out(0) = sum; }. Whatever else it meets is no sum.
class Parser {
public:
    Parser(std::string_view text, std::span<const double> parameters) : text_(text), parameters_(parameters) {}

    std::optional<Terms> read() {
        expect('{');
        std::string_view first;
        while ((first = word()) == "real" && good_) declare();
        if (first != "out" || integer('(') != 0) return {};
        expect(')'), expect('=');
        const Sum result = sum();
        expect(';'), expect('}');
        if (!good_ || next() != '\0' || result.number != 0) return {};
        return result.terms;
    }

private:
    static constexpr int deepest = 64;

    static bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

    char next() {
        while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
        return at_ < text_.size() ? text_[at_] : '\0';
    }
    bool take(char c) {
        if (next() != c) return false;
        ++at_;
        return true;
    }
    void expect(char c) { good_ = take(c) && good_; }

    std::string_view word() {
        next();
        const std::size_t from = at_;
        while (at_ < text_.size() && in_name(text_[at_])) ++at_;
        return text_.substr(from, at_ - from);
    }

    // std::from_chars from here on.
    template <class Value>
    Value read_number() {
        next();
        Value value = 0;
        const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
        at_ = static_cast<std::size_t>(end - text_.data());
        good_ = good_ && error == std::errc() && (at_ == text_.size() || !in_name(text_[at_]));  // no suffix, no other base
        return value;
    }

    int integer(char before) {
        expect(before);
        const bool negative = take('-');
        if (!negative) take('+');
        const int value = read_number<int>();
        return negative ? -value : value;
    }

    void declare() {
        do {
            const std::string name(word());
            expect('=');
            Sum value = sum();
            value.integer = false;
            good_ = good_ && !name.empty() && named_.emplace(name, value).second;
        } while (good_ && take(','));
        expect(';');
    }

    Sum sum() {
        Sum result = product();
        while (good_ && (next() == '+' || next() == '-')) {
            const double sign = take('+') ? 1 : -1;
            if (sign < 0) take('-');
            result.add(product(), sign);
        }
        return result;
    }

    Sum product() {
        Sum result = factor();
        while (good_ && (next() == '*' || next() == '/')) {
            const bool times = take('*') || !take('/');
            Sum by = factor();
            const bool integers = result.integer && by.integer;
            if (times && result.terms.empty()) std::swap(result, by);
            if (!by.terms.empty() || (!times && integers)) good_ = false;
            result.scale(times ? by.number : 1 / by.number);
            result.integer = integers;
        }
        return result;
    }

    Sum factor() {
        Sum result;
        if (++depth_ > deepest) good_ = false;
        const char c = next();
        if (!good_) return result;
        if (take('-')) {
            result = factor();
            result.scale(-1);
        } else if (take('+')) {
            result = factor();
        } else if (take('(')) {
            result = sum();
            expect(')');
        } else if (std::isdigit(static_cast<unsigned char>(c)) || c == '.') {
            const std::size_t from = at_;
            result.number = read_number<double>();
            result.integer = text_.substr(from, at_ - from).find_first_of(".eE") == std::string_view::npos;
        } else {
            result = named(std::string(word()));
        }
        --depth_;
        return result;
    }

    Sum named(const std::string& name) {
        Sum result;
        if (const auto found = named_.find(name); found != named_.end()) return found->second;
        if (name == "at") {
            const int field = integer('('), dx = integer(','), dy = integer(','), dz = integer(',');
            result.terms.push_back({field, dx, dy, dz, 1});
            expect(')');
        } else if (name == "p") {
            const int k = integer('(');
            expect(')');
            good_ = good_ && k >= 0 && static_cast<std::size_t>(k) < parameters_.size();
            if (good_) result.number = parameters_[static_cast<std::size_t>(k)];
        } else if (name == "mad") {
            expect('(');
            result = sum();
            expect(',');
            Sum by = sum();
            expect(',');
            if (result.terms.empty()) std::swap(result, by);
            good_ = good_ && by.terms.empty();
            result.scale(by.number);
            result.add(sum(), 1);
            result.integer = false;
            expect(')');
        } else if (name == "real" && take('(')) {
            result = sum();
            result.integer = false;
            expect(')');
        } else {
            good_ = false;
        }
        return result;
    }

    std::string_view text_;
    std::span<const double> parameters_;
    std::map<std::string, Sum> named_;
    std::size_t at_ = 0;
    int depth_ = 0;
    bool good_ = true;
};

}  // namespace

std::optional<std::vector<Term>> linear_terms(const PointFunction& function, std::span<const double> parameters) {
    std::optional<Terms> terms = Parser(function.source, parameters).read();
    if (terms && !std::all_of(terms->begin(), terms->end(), [](const Term& t) { return std::isfinite(t.coefficient); })) return {};
    return terms;
}

}  // namespace trifold::mesh
