// SPDX-License-Identifier: BSD-3-Clause
#include "io/npy.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "io/pipe_copy.hpp"
#include "trifold/error.hpp"

namespace trifold::io {

// Large enough to run at the speed of the disk, small enough for a progress bar.
static constexpr std::int64_t piece_bytes = std::int64_t{8} << 20;

Array read_npy(const ReadBytes& read, std::int64_t available, const std::string& where, bool values,
               const Progress& progress) {
    NpyHeader header = read_npy_header(read, where);
    const std::int64_t total = header.shape.bytes(), held = available - header.bytes;
    if (held != total)
        throw Error(ErrorCode::bad_input, where,
                    std::string(held < total ? "truncated: " : "too long: ") +
                        std::to_string(std::max<std::int64_t>(held, 0)) + " bytes of values where " +
                        header.shape.text() + " has " + std::to_string(total),
                    "copy or write the file anew");
    if (!values) return Array::without_values(std::move(header.shape));
    Array array(std::move(header.shape), where);
    char* to = array.as<char>();
    for (std::int64_t done = 0; done < total;) {
        const std::int64_t piece = std::min(piece_bytes, total - done);
        const std::size_t got = read(to + done, static_cast<std::size_t>(piece));
        if (static_cast<std::int64_t>(got) != piece)
            throw Error(ErrorCode::bad_input, where,
                        "truncated after " + std::to_string(done + static_cast<std::int64_t>(got)) + " bytes of values",
                        "copy or write the file anew");
        done += piece;
        if (progress) progress(done, total);
    }
    return array;
}

namespace {

class InputFile {
public:
    explicit InputFile(const std::string& path) : path_(path) {
        const std::string held = readable_again(path);
        struct stat state {};
        if (stat(held.c_str(), &state) != 0) fail(errno);
        if (S_ISDIR(state.st_mode)) fail(EISDIR);
        if (!S_ISREG(state.st_mode))
            throw Error(ErrorCode::bad_input, path, "is not a regular file, and its size must be known",
                        "copy it into a file first");
        file_ = open(held.c_str(), O_RDONLY | O_CLOEXEC);
        if (file_ < 0) fail(errno);
        bytes_ = state.st_size;
    }
    ~InputFile() {
        if (file_ >= 0) close(file_);
    }
    InputFile(const InputFile&) = delete;
    InputFile& operator=(const InputFile&) = delete;

    std::int64_t bytes() const { return bytes_; }
    std::size_t read(void* to, std::size_t bytes) const {
        std::size_t done = 0;
        while (done < bytes) {
            const ssize_t got = ::read(file_, static_cast<char*>(to) + done, bytes - done);
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) fail(errno);
            if (got == 0) break;
            done += static_cast<std::size_t>(got);
        }
        return done;
    }

private:
    [[noreturn]] void fail(int error) const {
        const std::string hint = error == ENOENT ? "check the name and the folder" : "";
        throw Error(ErrorCode::bad_input, path_, std::string("cannot be read: ") + std::strerror(error), hint);
    }
    std::string path_;
    int file_ = -1;
    std::int64_t bytes_ = 0;
};

}  // namespace

Array load_npy(const std::string& path, bool values, const Progress& progress) {
    const InputFile file(path);
    const ReadBytes read = [&file](void* to, std::size_t bytes) { return file.read(to, bytes); };
    return read_npy(read, file.bytes(), path, values, progress);
}

void save_npy(const std::string& path, const Shape& shape, const void* data, const Progress& progress,
              TemporaryWatch watch) {
    AtomicFile file(path, std::move(watch));
    const std::string header = format_npy_header(shape);
    file.write(header.data(), header.size());
    const std::int64_t total = shape.bytes();
    for (std::int64_t done = 0; done < total;) {
        const std::int64_t piece = std::min(piece_bytes, total - done);
        file.write(static_cast<const char*>(data) + done, static_cast<std::size_t>(piece));
        done += piece;
        if (progress) progress(done, total);
    }
    file.commit();
}

}  // namespace trifold::io
