// SPDX-License-Identifier: BSD-3-Clause
#include "io/pipe_copy.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "trifold/error.hpp"

namespace trifold::io {
namespace {

[[noreturn]] void fail(const std::string& who, const char* what, const std::string& hint) {
    throw Error(ErrorCode::bad_input, who, std::string(what) + ": " + std::strerror(errno), hint);
}

std::string temporary_folder() {
    const char* const set = std::getenv("TMPDIR");
    return set && *set ? set : "/tmp";
}

std::string opened(int file) {
    return "/dev/fd/" + std::to_string(file);
}

std::string copy_of(int pipe, const std::string& who) {
    const std::string full = "free some space in " + temporary_folder() + ", or set TMPDIR";
    const int copy = nameless_file(who);
    std::vector<char> buffer(1 << 20);
    while (true) {
        const ssize_t got = read(pipe, buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail(who, "cannot be read", "");
        if (got == 0) return opened(copy);
        for (ssize_t done = 0; done < got;) {
            const ssize_t put = write(copy, buffer.data() + done, static_cast<std::size_t>(got - done));
            if (put < 0 && errno == EINTR) continue;
            if (put <= 0) fail(who, "cannot be copied into a temporary file", full);
            done += put;
        }
    }
}

}  // namespace

int nameless_file(const std::string& who) {
    std::string name = temporary_folder() + "/trifold-XXXXXX";
    const int file = mkostemp(name.data(), O_CLOEXEC);
    if (file < 0) fail(who, ("needs a temporary file, and " + temporary_folder() + " takes none").c_str(), "set TMPDIR to a folder that can be written");
    unlink(name.c_str());
    return file;
}

std::string readable_again(const std::string& path) {
    static std::mutex mutex;
    static std::map<std::string, std::string> copies;
    const bool standard = path == "-";
    struct stat state {};
    if ((standard ? fstat(STDIN_FILENO, &state) : stat(path.c_str(), &state)) != 0) return path;
    if (standard && isatty(STDIN_FILENO)) throw Error(ErrorCode::usage, "-", "stdin is a terminal", "redirect a file or a pipe into it");
    if (standard && S_ISREG(state.st_mode)) return "/dev/stdin";
    if (!S_ISFIFO(state.st_mode) && !S_ISSOCK(state.st_mode)) return standard ? "/dev/stdin" : path;
    const std::lock_guard lock(mutex);
    const auto known = copies.find(path);
    if (known != copies.end()) return known->second;
    const int pipe = standard ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (pipe < 0) fail(path, "cannot be read", "");
    const std::string copy = copy_of(pipe, path);
    if (!standard) close(pipe);
    return copies.emplace(path, copy).first->second;
}

}  // namespace trifold::io
