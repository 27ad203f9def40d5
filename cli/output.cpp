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

void say(const std::string& line) {
    std::fprintf(stderr, "trifold: %s\n", line.c_str());
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
