// SPDX-License-Identifier: BSD-3-Clause
#include "output.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "trifold/error.hpp"

namespace trifold::cli {

void print(const std::string& data) {
    if (std::fwrite(data.data(), 1, data.size(), stdout) != data.size() || std::fflush(stdout) != 0 || std::ferror(stdout))
        throw Error(ErrorCode::bad_input, "stdout", std::string("cannot be written: ") + std::strerror(errno));
}

namespace {

/// Bytes of the UTF-8 sequence at `at`; 0 where there is none.
std::size_t sequence(const std::string& text, std::size_t at) {
    const auto byte = [&](std::size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0u; };
    const unsigned first = byte(at);
    const std::size_t length = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : first >= 0xf0 && first < 0xf5 ? 4 : 0;
    for (std::size_t k = 1; k < length; ++k)
        if ((byte(at + k) & 0xc0) != 0x80) return 0;
    return length;
}

}  // namespace

// Names of files, and what files hold, may be any bytes: what a terminal would obey, or a reader of UTF-8 stumble over, becomes '?'.
void say(const std::string& line) {
    std::string out = "trifold: ";
    for (std::size_t at = 0; at < line.size();) {
        const std::size_t length = sequence(line, at);
        const bool control = length == 1 && (static_cast<unsigned char>(line[at]) < 0x20 || line[at] == 0x7f);
        if (length == 0 || control) out += '?', ++at;
        else out.append(line, at, length), at += length;
    }
    out += '\n';
    (void)std::fwrite(out.data(), 1, out.size(), stderr);
}

static bool dumb() {
    const char* term = std::getenv("TERM");
    return !term || std::string_view(term) == "dumb";
}

static bool no_colour() {
    const char* value = std::getenv("NO_COLOR");
    return value && *value;
}

bool colour_on_stdout() {
    return isatty(STDOUT_FILENO) && !dumb() && !no_colour();
}
bool terminal_on_stderr() {
    return isatty(STDERR_FILENO) && !dumb();
}
bool terminal_on_stdout() {
    return isatty(STDOUT_FILENO);
}

}  // namespace trifold::cli
