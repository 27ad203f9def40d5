// SPDX-License-Identifier: BSD-3-Clause
#include "io/npy_header.hpp"

#include <charconv>
#include <optional>

#include "trifold/error.hpp"

namespace trifold::io {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t longest_header = std::size_t{1} << 20;

// The three values of the dict, as text where they need judging.
class HeaderText {
public:
    HeaderText(std::string_view text, const std::string& where) : rest_(text), where_(where) {}

    NpyHeader parse() {
        std::optional<DType> dtype;
        std::optional<bool> fortran;
        std::optional<std::vector<std::int64_t>> extents;
        expect('{');
        while (!accept('}')) {
            const std::string key = quoted();
            expect(':');
            if (key == "descr" && !dtype)
                dtype = dtype_value();
            else if (key == "fortran_order" && !fortran)
                fortran = boolean();
            else if (key == "shape" && !extents)
                extents = tuple();
            else
                garbage("key '" + printable(key) + "' unknown or given twice");
            if (accept(',')) continue;
            expect('}');
            break;
        }
        skip_space();
        if (!rest_.empty()) garbage("text after the closing brace");
        if (!dtype || !fortran || !extents) garbage("one of descr, fortran_order, shape is missing");
        NpyHeader header;
        header.shape = Shape{*dtype, std::move(*extents), *fortran};
        header.shape.checked(where_);
        return header;
    }

private:
    [[noreturn]] void garbage(const std::string& what) const {
        throw Error(ErrorCode::bad_input, where_, "the .npy header is damaged: " + what,
                    "write the file anew with numpy.save");
    }

    static std::string printable(std::string_view text) {
        std::string result;
        for (const char c : text.substr(0, 40)) result += c >= ' ' && c < 127 ? c : '?';
        return result;
    }

    void skip_space() {
        while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n' || rest_[0] == '\t' || rest_[0] == '\r'))
            rest_.remove_prefix(1);
    }
    bool accept(char c) {
        skip_space();
        if (rest_.empty() || rest_[0] != c) return false;
        rest_.remove_prefix(1);
        return true;
    }
    void expect(char c) {
        if (!accept(c)) garbage(std::string("'") + c + "' expected at '" + printable(rest_.substr(0, 12)) + "'");
    }

    std::string quoted() {
        skip_space();
        const char quote = rest_.empty() ? '\0' : rest_[0];
        const std::size_t end = quote == '\'' || quote == '"' ? rest_.find(quote, 1) : std::string_view::npos;
        if (end == std::string_view::npos) garbage("a quoted text expected");
        const std::string text(rest_.substr(1, end - 1));
        rest_.remove_prefix(end + 1);
        return text;
    }

    bool boolean() {
        skip_space();
        for (const bool value : {false, true}) {
            const std::string_view word = value ? "True" : "False";
            if (!rest_.starts_with(word)) continue;
            rest_.remove_prefix(word.size());
            return value;
        }
        garbage("True or False expected");
    }

    std::vector<std::int64_t> tuple() {
        std::vector<std::int64_t> values;
        expect('(');
        while (!accept(')')) {
            skip_space();
            std::int64_t value = 0;
            const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
            if (error == std::errc::result_out_of_range) garbage("an extent beyond 63 bits");
            if (error != std::errc{} || values.size() == 64) garbage("a tuple of at most 64 integers expected");
            rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
            values.push_back(value);
            if (accept(',')) continue;
            expect(')');
            break;
        }
        return values;
    }

    [[noreturn]] void unusable(const std::string& type, const std::string& kind) const {
        throw Error(ErrorCode::bad_input, where_,
                    "type '" + printable(type) + "' is " + kind + "; f4 and f8, little-endian, can be read",
                    "save it as array.astype('<f8') or array.astype('<f4')");
    }

    DType dtype_value() {
        skip_space();
        if (!rest_.empty() && (rest_[0] == '[' || rest_[0] == '('))
            unusable(std::string(rest_.substr(0, rest_.find_first_of(")]") + 1)), "structured");
        const std::string type = quoted();
        if (type == "<f8") return DType::f64;
        if (type == "<f4") return DType::f32;
        const char order = type.empty() ? '\0' : type[0], kind = type.size() < 2 ? '\0' : type[1];
        switch (kind) {
        case 'f':
            unusable(type, order == '>' ? "big-endian" : "a real of another size");
        case 'c':
            unusable(type, "complex");
        case 'i':
        case 'u':
            unusable(type, "integer");
        case 'b':
            unusable(type, "boolean");
        case 'S':
        case 'U':
        case 'a':
            unusable(type, "a string type");
        case 'O':
            unusable(type, "Python objects");
        case 'V':
            unusable(type, "structured");
        case 'M':
        case 'm':
            unusable(type, "a time");
        default:
            unusable(type, "unknown");
        }
    }

    std::string_view rest_;
    const std::string& where_;
};

}  // namespace

NpyHeader read_npy_header(const ReadBytes& read, const std::string& where) {
    unsigned char start[12];
    const auto take = [&](void* to, std::size_t bytes) {
        if (read(to, bytes) != bytes)
            throw Error(ErrorCode::bad_input, where, "truncated within the .npy header",
                        "write the file anew with numpy.save");
    };
    const std::size_t got = read(start, 8);
    if (std::string_view(reinterpret_cast<const char*>(start), std::min(got, magic.size())) != magic)
        throw Error(ErrorCode::bad_input, where,
                    got == 0 ? "empty" : "not a .npy array (its first bytes are not \\x93NUMPY)",
                    "write it with numpy.save or numpy.savez");
    if (got != 8) take(start + got, 8 - got);
    const int major = start[6];
    if (major < 1 || major > 3)
        throw Error(ErrorCode::bad_input, where,
                    ".npy version " + std::to_string(major) + "." + std::to_string(start[7]),
                    "versions 1.0 to 3.0 can be read");
    const std::size_t length_bytes = major == 1 ? 2 : 4;
    take(start + 8, length_bytes);
    std::size_t length = 0;
    for (std::size_t k = length_bytes; k-- > 0;) length = length << 8 | start[8 + k];
    if (length > longest_header)
        throw Error(ErrorCode::bad_input, where, "the .npy header claims " + std::to_string(length) + " bytes",
                    "write the file anew with numpy.save");
    std::string text(length, '\0');
    take(text.data(), length);
    NpyHeader header = HeaderText(text, where).parse();
    header.bytes = static_cast<std::int64_t>(8 + length_bytes + length);
    return header;
}

std::string format_npy_header(const Shape& shape) {
    std::string text = std::string("{'descr': '<f") + (shape.dtype == DType::f32 ? '4' : '8') +
                       "', 'fortran_order': " + (shape.fortran && shape.extents.size() > 1 ? "True" : "False") +
                       ", 'shape': (";
    for (const std::int64_t extent : shape.extents) text += std::to_string(extent) + ",";
    text += "), }";
    const std::size_t unpadded = magic.size() + 4 + text.size() + 1;
    text.append((64 - unpadded % 64) % 64, ' ');
    text += '\n';
    std::string header(magic);
    header += {'\1', '\0', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
    return header + text;
}

}  // namespace trifold::io
