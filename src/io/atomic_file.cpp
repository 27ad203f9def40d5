// SPDX-License-Identifier: BSD-3-Clause
#include "io/atomic_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>

#include "base/available_memory.hpp"
#include "trifold/error.hpp"

namespace trifold::io {
namespace {

class SignalsBlocked {
public:
    SignalsBlocked() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &old_, nullptr); }

private:
    sigset_t old_;
};

std::string folder_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// Where a chain of symbolic links ends, be there a file or none yet. What /proc shows as links of open pipes leads nowhere, and can be opened.
std::string final_target(const std::string& path) {
    struct stat state {};
    if (stat(path.c_str(), &state) == 0 && !S_ISREG(state.st_mode)) return path;
    std::string target = path;
    for (int links = 0; links < 40; ++links) {
        char to[PATH_MAX];
        const ssize_t length = readlink(target.c_str(), to, sizeof to);
        if (length <= 0 || static_cast<std::size_t>(length) == sizeof to) break;
        const std::string next(to, static_cast<std::size_t>(length));
        target = next[0] == '/' ? next : folder_of(target) + "/" + next;
    }
    return target;
}

[[noreturn]] void cannot_write(const std::string& path, const std::string& why, const std::string& hint) {
    throw Error(ErrorCode::bad_input, path, "cannot be written: " + why, hint);
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path, TemporaryWatch watch) : path_(path), watch_(std::move(watch)) {
    if (path == "-") {
        file_ = STDOUT_FILENO;
        return;
    }
    target_ = final_target(path);
    struct stat old {};
    const bool exists = stat(target_.c_str(), &old) == 0;
    if (!exists && errno == ELOOP) fail("open", ELOOP);
    if (exists && S_ISDIR(old.st_mode)) cannot_write(path, "it is a folder", "name a file in it");
    if (exists && !S_ISREG(old.st_mode)) {
        file_ = open(target_.c_str(), O_WRONLY | O_CLOEXEC);
        owned_ = true;
        if (file_ < 0) fail("open", errno);
        return;
    }
    if (exists && access(target_.c_str(), W_OK) != 0) fail("open", errno);
    static std::atomic<unsigned> serial{0};
    const std::size_t slash = target_.rfind('/');
    const std::string name = slash == std::string::npos ? target_ : target_.substr(slash + 1);
    if (name.size() > NAME_MAX) fail("open", ENAMETOOLONG);  // the temporary's name is cut, and would only fail to be renamed
    const SignalsBlocked blocked;
    do {
        temporary_ = folder_of(target_) + "/." + name.substr(0, NAME_MAX - 40) + "." + std::to_string(getpid()) + "." +
                     std::to_string(serial++) + ".tmp";
        if (watch_) watch_(temporary_.c_str());  // before it is there: a signal may reach another thread
        file_ = open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (file_ < 0 && errno == EEXIST);
    if (file_ < 0) {
        const int error = errno;
        temporary_.clear();
        if (watch_) watch_(nullptr);
        fail("open", error);
    }
    owned_ = true;
    // What the file mode mask took away is given back only where the old file had it.
    if (exists) (void)fchmod(file_, old.st_mode & 07777);
}

AtomicFile::~AtomicFile() {
    discard();
}

void AtomicFile::discard() noexcept {
    if (owned_ && file_ >= 0) close(file_);
    file_ = -1;
    if (temporary_.empty()) return;
    const SignalsBlocked blocked;
    unlink(temporary_.c_str());
    temporary_.clear();
    if (watch_) watch_(nullptr);
}

void AtomicFile::fail(const char* what, int error) const {
    std::string hint = "choose another place with -o";
    if (error == ENOENT && access(folder_of(target_).c_str(), F_OK) != 0) hint = "make the folder " + folder_of(target_) + " first, or choose another";
    if (error == ENAMETOOLONG) hint = "choose a shorter name";
    if (error == EFBIG) hint = "raise the limit on the size of files (ulimit -f), or choose another disk with -o";
    if (error == ENOSPC || error == EDQUOT) hint = "free some space, or choose another disk with -o";
    cannot_write(path_,
                 std::string(std::strerror(error)) + (std::strcmp(what, "open") == 0 ? "" : std::string(" in ") + what),
                 hint);
}

void AtomicFile::write(const void* bytes, std::size_t count) {
    const char* from = static_cast<const char*>(bytes);
    while (count > 0) {
        const ssize_t done = ::write(file_, from, count);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) fail("write", done < 0 ? errno : ENOSPC);
        from += done;
        count -= static_cast<std::size_t>(done);
    }
}

void AtomicFile::write_at(std::int64_t offset, const void* bytes, std::size_t count) {
    const char* from = static_cast<const char*>(bytes);
    while (count > 0) {
        const ssize_t done = pwrite(file_, from, count, offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) fail("write", done < 0 ? errno : ENOSPC);
        from += done;
        offset += done;
        count -= static_cast<std::size_t>(done);
    }
}

std::size_t AtomicFile::read_at(std::int64_t offset, void* bytes, std::size_t count) {
    ssize_t done = 0;
    do done = pread(file_, bytes, count, offset);
    while (done < 0 && errno == EINTR);
    if (done < 0) fail("read", errno);
    return static_cast<std::size_t>(done);
}

void AtomicFile::truncate(std::int64_t size) {
    if (ftruncate(file_, size) != 0) fail("truncate", errno);
}

void AtomicFile::commit() {
    if (!owned_) return;
    if (temporary_.empty()) {
        const int error = close(file_) == 0 ? 0 : errno;
        file_ = -1;
        if (error) fail("close", error);
        return;
    }
    if (fsync(file_) != 0) fail("sync", errno);
    const int error = close(file_) == 0 ? 0 : errno;
    file_ = -1;
    if (error) fail("close", error);
    const SignalsBlocked blocked;
    if (rename(temporary_.c_str(), target_.c_str()) != 0) fail("rename", errno);
    temporary_.clear();
    if (watch_) watch_(nullptr);
    // The new name is durable once its folder is; a file system that cannot sync folders has done what it can.
    const int folder = open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) (void)fsync(folder), close(folder);
}

bool same_file(const std::string& a, const std::string& b) {
    struct stat first {}, second {};
    const bool is_first = stat(a.c_str(), &first) == 0, is_second = stat(b.c_str(), &second) == 0;
    if (is_first != is_second) return false;
    if (!is_first) return std::filesystem::absolute(final_target(a)).lexically_normal() == std::filesystem::absolute(final_target(b)).lexically_normal();
    return S_ISREG(first.st_mode) && first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

void require_writable(const std::string& path, std::int64_t bytes, const TemporaryWatch& watch) {
    if (path == "-") return;
    const std::string target = final_target(path);
    struct stat old {};
    const bool exists = stat(target.c_str(), &old) == 0;
    // Opened and closed, a pipe has ended for its reader.
    if (exists && S_ISFIFO(old.st_mode) && access(target.c_str(), W_OK) == 0) return;
    { const AtomicFile probe(path, watch); }
    if (exists && !S_ISREG(old.st_mode)) return;
    struct statvfs space {};
    if (statvfs(folder_of(target).c_str(), &space) != 0) return;
    const double left = static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize);
    if (left < static_cast<double>(bytes))
        cannot_write(path,
                     "needs " + bytes_text(static_cast<double>(bytes)) + " of disk, " + bytes_text(left) + " free",
                     "free some space, or choose another disk with -o");
}

}  // namespace trifold::io
