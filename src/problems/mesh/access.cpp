// SPDX-License-Identifier: BSD-3-Clause
#include "problems/mesh/access.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include "trifold/error.hpp"

namespace trifold::mesh {
namespace {

constexpr unsigned own_row = 1u << (max_reach * rows_across + max_reach);

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

class Reader {
public:
    explicit Reader(const PointFunction& function) : name_(function.name), text_(function.source) {}

    Access read() {
        for (std::size_t i = 0; i < text_.size(); ++i) {
            if (!in_name(text_[i]) || (i > 0 && in_name(text_[i - 1]))) continue;
            std::size_t end = i;
            while (end < text_.size() && in_name(text_[end])) ++end;
            const std::string_view word = text_.substr(i, end - i);
            if (word == "at") read_at(i, end);
            else if (word == "out") read_out(i, end);
            else if (word == "p") read_parameter(i, end);
        }
        if (written_ != (1u << access_.outputs) - 1) fail(0, "some out(k) below out(" + std::to_string(access_.outputs - 1) + ") is never assigned");
        return access_;
    }

private:
    [[noreturn]] void fail(std::size_t at, const std::string& what) const {
        const std::string_view near = text_.substr(at, 24);
        throw Error(ErrorCode::usage, "point function '" + name_ + "'", what + (at ? ": \"" + std::string(near) + "…\"" : ""),
                    "see trifold/point_function.hpp for what may stand there");
    }

    // The integers between the parentheses that follow; the word that they belong to begins at `word`.
    std::array<int, 4> arguments(std::size_t word, std::size_t from, int count) const {
        std::array<int, 4> found{};
        std::size_t i = from;
        const auto skip = [&] {
            while (i < text_.size() && std::isspace(static_cast<unsigned char>(text_[i]))) ++i;
        };
        const auto expect = [&](char c) {
            skip();
            if (i >= text_.size() || text_[i] != c) fail(word, std::to_string(count) + (count == 1 ? " integer is" : " integers are") + " due here");
            ++i;
        };
        expect('(');
        for (int k = 0; k < count; ++k) {
            if (k) expect(',');
            skip();
            const bool negative = i < text_.size() && text_[i] == '-';
            if (negative || (i < text_.size() && text_[i] == '+')) ++i;
            skip();
            const std::size_t digits = i;
            int value = 0;
            for (; i < text_.size() && std::isdigit(static_cast<unsigned char>(text_[i])); ++i) value = std::min(10 * value + (text_[i] - '0'), 1 << 20);
            if (i == digits) fail(word, "an integer as such is due, neither a name nor an expression");
            found[static_cast<std::size_t>(k)] = negative ? -value : value;
        }
        expect(')');
        return found;
    }

    void read_at(std::size_t word, std::size_t from) {
        const auto [field, dx, dy, dz] = arguments(word, from, 4);
        if (field < 0 || field > max_fields) fail(word, "there is no field " + std::to_string(field));
        if (std::max({std::abs(dx), std::abs(dy), std::abs(dz)}) > max_reach)
            fail(word, "more than " + std::to_string(max_reach) + " points away");
        FieldAccess& one = access_.field[static_cast<std::size_t>(field)];
        const int row = (dz + max_reach) * rows_across + dy + max_reach;
        unsigned char& along_x = one.along_x[static_cast<std::size_t>(row)];
        one.rows |= 1u << row;
        along_x = std::max(along_x, static_cast<unsigned char>(std::abs(dx)));
        access_.fields = std::max(access_.fields, field + 1);
    }

    void read_out(std::size_t word, std::size_t from) {
        const int k = arguments(word, from, 1)[0];
        if (k < 0 || k > 2) fail(word, "results are out(0) to out(2)");
        written_ |= 1u << k;
        access_.outputs = std::max(access_.outputs, k + 1);
    }

    void read_parameter(std::size_t word, std::size_t from) {
        const int k = arguments(word, from, 1)[0];
        if (k < 0) fail(word, "there is no such parameter");
        access_.parameters = std::max(access_.parameters, k + 1);
    }

    std::string name_;
    std::string_view text_;
    Access access_;
    unsigned written_ = 0;
};

}  // namespace

bool FieldAccess::looks_along_x() const noexcept {
    return std::any_of(along_x.begin(), along_x.end(), [](unsigned char points) { return points > 0; });
}

bool FieldAccess::neighbours() const noexcept { return (rows & ~own_row) != 0 || looks_along_x(); }

Access access_of(const PointFunction& function) { return Reader(function).read(); }

std::array<int, 2> summands_of(const PointFunction& function) {
    std::string text(function.source);
    std::erase_if(text, [](char c) { return std::isspace(static_cast<unsigned char>(c)); });
    for (int a = 0; a <= max_fields; ++a)
        for (int b = 0; b <= max_fields; ++b)
            if (text == "{out(0)=at(" + std::to_string(a) + ",0,0,0)+at(" + std::to_string(b) + ",0,0,0);}") return {a, b};
    return {-1, -1};
}

bool mentions(const PointFunction& function, std::string_view word) {
    const std::string_view text = function.source;
    const auto in_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
        const std::size_t end = at + word.size();
        if ((at == 0 || !in_name(text[at - 1])) && (end == text.size() || !in_name(text[end]))) return true;
    }
    return false;
}

}  // namespace trifold::mesh
